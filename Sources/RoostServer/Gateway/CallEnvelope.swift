import RoostAPI

/// The frame around an operation, `{"call":7,"operation":"user.me","with":{…}}`, as clients usually write it.
///
/// Finding its members costs a tenth of decoding the whole frame with Foundation. Names and strings may contain escapes. A frame that is
/// written differently, such as with a signed or fractional number, or isn't a call, has no envelope: Foundation reads it.
struct CallEnvelope {
    private(set) var call: Int64 = 0
    private(set) var operation = ""
    /// The text of its idempotency key; nil if it has none.
    private(set) var key: String?
    /// The byte range of the operation's fields; nil if there are none.
    private(set) var fields: Range<Int>?

    /// How deeply the fields may be nested: far less than Foundation accepts.
    private static let depthMax = 32

    /// - Parameters:
    ///   - bytes: JSON without duplicate keys, as ``JSONScan`` has checked.
    ///   - limitsFields: Whether deeply nested fields are left to Foundation.
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

    /// The call's number, if it is the first member of its frame; otherwise nil. The rest needn't be JSON.
    static func firstCall(in bytes: [UInt8]) -> Int64? {
        var reader = PlainJSON(bytes)
        guard reader.take("{"), reader.take(word: "\"call\""), reader.take(":") else { return nil }
        return reader.number()
    }
}
