/// A server's error, whose code may be newer than this version.
package struct LenientError {
    package let value: RoostError
}

extension LenientError {
    /// An error with the code that a server sent.
    ///
    /// - Parameter error: Its other fields.
    package init(code: String, _ error: RoostError) {
        var error = error
        if let known = RoostError.Code(rawValue: code) {
            error.code = known
        } else {
            // An unknown refusal counts as final, because retrying unchanged would be guesswork, unless the server says when to retry.
            error.code = error.retryAfterMilliseconds == nil ? .notPermitted : .unavailable
            (error.message, error.rule) = ("\(error.message) (\(code))", code)
        }
        value = error
    }
}

extension LenientError: Decodable {
    private enum CodingKeys: String, CodingKey { case code, message, field, limit, rule, until, retryAfterMilliseconds }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        /// A field that is absent or can't be read doesn't affect the others.
        func field<Value: Decodable>(_ key: CodingKeys) -> Value? { try? container.decodeIfPresent(Value.self, forKey: key) }
        let error = RoostError(
            .notPermitted, field(.message) ?? "The server refused.", field: field(.field), limit: field(.limit),
            rule: field(.rule), until: field(.until), retryAfterMilliseconds: field(.retryAfterMilliseconds))
        self.init(code: try container.decode(String.self, forKey: .code), error)
    }
}

extension LenientError: SchemaDescribed {
    package static var schema: Schema { (try? Schema.of(RoostError.self)) ?? .any }
    package static var schemaExample: LenientError { LenientError(value: RoostError(.notPermitted, "")) }
}
