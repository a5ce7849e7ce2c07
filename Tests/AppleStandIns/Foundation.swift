public import Foundation

// The parts of Foundation that exist on Apple's systems and not on Linux, after its documentation.

extension URLResourceValues {
    public var isExcludedFromBackup: Bool? {
        get { nil }
        set {}
    }
}

extension ProcessInfo {
    public func performExpiringActivity(withReason reason: String, using block: @escaping @Sendable (Bool) -> Void) {}
}

// Its parts of Objective-C, to find a class and send an object a message by their names.

public struct Selector: Sendable {}

// swift-format-ignore: AlwaysUseLowerCamelCase
public func NSSelectorFromString(_ aSelectorName: String) -> Selector { Selector() }

extension NSObject {
    public class func responds(to aSelector: Selector?) -> Bool { false }
    public class func perform(_ aSelector: Selector?) -> Unmanaged<AnyObject>? { nil }
    public func value(forKey key: String) -> Any? { nil }
}
