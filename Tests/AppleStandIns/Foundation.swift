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

// What it has of Objective-C, to find a class and ask an object of it by their names.

public struct Selector: Sendable {}

// swift-format-ignore: AlwaysUseLowerCamelCase
public func NSSelectorFromString(_ aSelectorName: String) -> Selector { Selector() }

extension NSObject {
    public class func responds(to aSelector: Selector?) -> Bool { false }
    public class func perform(_ aSelector: Selector?) -> Unmanaged<AnyObject>? { nil }
    public func value(forKey key: String) -> Any? { nil }
}
