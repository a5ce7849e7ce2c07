public import Foundation

// What Foundation has on Apple's systems and not on Linux, as its documentation has it.

extension URLResourceValues {
    public var isExcludedFromBackup: Bool? {
        get { nil }
        set {}
    }
}

extension ProcessInfo {
    public func performExpiringActivity(withReason reason: String, using block: @escaping @Sendable (Bool) -> Void) {}
}
