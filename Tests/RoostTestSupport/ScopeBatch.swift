import RoostAPI
public import Logging

/// Good and bad operations sent together, to share batches: the bad ones move a stream outside of their scope.
package enum ScopeBatch {
    package static func run(on server: TestServer) async throws {
        let token = try await server.token("ann")
        let body = #"{"channel":"general"}"#
        guard try await server.request("POST", "/v1/channels", token: token, body: body).status == 200 else {
            throw Missed("a channel")
        }
        let codes = try await withThrowingTaskGroup(of: RoostError.Code?.self) { group in
            for number in 0..<40 {
                group.addTask {
                    do {
                        if number.isMultiple(of: 2) {
                            try await server.perform(Misplaced(.send, in: "general", users: ["ann"]), as: "ann")
                        } else {
                            let id = ClientID("good \(number)")
                            try await server.perform(SendMessage(channel: "general", clientId: id, text: "good"), as: "ann")
                        }
                        return nil
                    } catch let error as RoostError {
                        return error.code
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        guard codes.filter({ $0 == .internalError }).count == 20, codes.filter({ $0 == nil }).count == 20 else {
            throw Missed("20 internal failures and 20 messages: \(codes)")
        }
        let page = try await server.request("GET", "/v1/channels/general/messages?limit=100", token: token)
        let texts = try page.decoded(MessagePage.self).messages.map(\.text)
        guard texts == Array(repeating: "good", count: 20) else { throw Missed("20 good messages and no other: \(texts)") }
    }
}

extension MetricsText {
    /// How often an operation ended as an internal failure.
    package func failures(of operation: String) -> Double? {
        value("roost_refusals_total", ["operation": operation, "code": RoostError.Code.internalError.rawValue])
    }
}

/// Passes on the metadata of each log line.
public struct LogLines: LogHandler {
    public var metadata: Logger.Metadata = [:]
    public var logLevel = Logger.Level.trace
    private let record: @Sendable (String) -> Void

    public init(_ record: @escaping @Sendable (String) -> Void) { self.record = record }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        record((event.metadata ?? [:]).map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " "))
    }
}
