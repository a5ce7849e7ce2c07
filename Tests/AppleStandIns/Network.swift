public import Dispatch

// The parts of Apple's Network that the SDK uses, after its documentation.

public final class NWPathMonitor: Sendable {
    public init() {}
    public var pathUpdateHandler: (@Sendable (_ newPath: NWPath) -> Void)? {
        get { nil }
        set {}
    }
    public func start(queue: DispatchQueue) {}
    public func cancel() {}
}

public struct NWPath: Sendable {
    public enum Status: Sendable {
        case satisfied
        case unsatisfied
        case requiresConnection
    }
    public let status: Status
    public let availableInterfaces: [NWInterface]
}

public struct NWInterface: Sendable {
    public let name: String
}
