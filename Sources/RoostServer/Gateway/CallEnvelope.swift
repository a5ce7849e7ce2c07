import RoostAPI

/// The frame around an operation, `{"call":7,"operation":"user.me","with":{…}}`, as clients usually write it.
///
/// Finding its members costs a tenth of having Foundation read the whole frame. Their names and texts may have escapes. A frame that is written in
/// another way, such as with a number that has a sign or a fraction, or that isn't a call, has none: Foundation reads it.
struct CallEnvelope {
    private(set) var call: Int64 = 0
    private(set) var operation = ""
    /// The text of its key; nil if it has none.
    private(set) var key: String?
    /// The place of the operation's fields; nil if there are none.
    private(set) var fields: Range<Int>?

    /// The deepest objects and arrays in the fields: far less than Foundation reads.
    private static let depthMax = 32

    /// - Parameters:
    ///   - bytes: JSON without duplicate keys, as ``JSONScan`` has checked.
    ///   - limitsFields: Whether fields that are nested deeply are left to Foundation.
    init?(_ bytes: [UInt8], limitsFields: Bool = true) {
        var reader = PlainJSON(bytes)
        var hasCall = false
        guard reader.take("{") else { return nil }
        repeat {
            guard let key = reader.string(), reader.take(":") else { return nil }
            switch key {
            case "call":
                guard let number = reader.number() else { return nil }
                (call, hasCall) = (number, true)
            case "operation":
                guard let name = reader.string() else { return nil }
                operation = name
            case IdempotencyKey.member:
                guard let text = reader.string() else { return nil }
                self.key = text
            case "with":
                guard let range = reader.object(depthMax: limitsFields ? Self.depthMax : bytes.count) else { return nil }
                fields = range
            default: return nil
            }
        } while reader.take(",")
        guard hasCall, !operation.isEmpty, reader.take("}"), reader.isAtEnd else { return nil }
    }

    /// The number of a call that stands first in its frame; nil if something else does. The rest needn't be JSON.
    static func firstCall(in bytes: [UInt8]) -> Int64? {
        var reader = PlainJSON(bytes)
        guard reader.take("{"), reader.take(word: "\"call\""), reader.take(":") else { return nil }
        return reader.number()
    }
}
