import HTTPTypes
import Hummingbird
import RoostAPI
import RoostCore

/// The headers of a request that belong to the operation. One that doesn't apply to an operation is refused, never ignored.
enum RequestHeaders {
    /// A header that sets a field of the operation.
    struct OfField: Sendable {
        let name: String
        /// The operation's field. An operation without it doesn't take the header.
        let field: String
        let summary: String
        let value: @Sendable (String) throws(RoostError) -> JSONValue

        func read(_ request: Request, into fields: inout [String: JSONValue], entry: OperationTable.Entry) throws(RoostError) {
            guard let text = try RequestHeaders.single(name, of: request) else { return }
            guard entry.fields.contains(field) else {
                // The call takes it as its key.
                guard name != idempotencyKey else { return }
                throw .invalidArgument(name, "isn't accepted by \(entry.type.name), which has no field \(field)")
            }
            let value = try value(text)
            let given = fields[field] ?? .null
            guard given == .null || given == value else {
                throw .invalidArgument(name, "differs from the field \(field) of the body")
            }
            fields[field] = value
        }
    }

    static let actAs = "Roost-Act-As"

    static let idempotencyKey = "Idempotency-Key"

    /// Returns the key of a call; nil if it has none, or if the key is a field of the operation.
    ///
    /// - Throws: `invalid_argument` for a key that isn't a UUID of version 7, and for an operation that takes no key.
    static func key(of request: Request, entry: OperationTable.Entry) throws(RoostError) -> IdempotencyKey? {
        guard !entry.fields.contains("idempotencyKey"), let text = try single(idempotencyKey, of: request) else { return nil }
        try entry.type.requireTakingKey(field: idempotencyKey)
        return try IdempotencyKey(try key(text), field: idempotencyKey)
    }

    static let ofFields = [
        OfField(
            name: idempotencyKey, field: "idempotencyKey",
            summary:
                "A repeated call with the same key has no further effect, and is answered with 204. A UUID of version 7, in quotes or bare; for channel.create, the value of its field idempotencyKey.",
            value: { text throws(RoostError) in .string(try key(text)) }),
        OfField(
            name: "If-Match", field: "ifMetadataVersion",
            summary: "Does what the field ifMetadataVersion does: the version in quotes, as a strong entity tag.",
            value: { text throws(RoostError) in .integer(try version(text)) }),
    ]

    /// The headers that the request for a socket doesn't take, with the reason: they apply to one operation, and a socket belongs to one user. The
    /// socket's token says on whose behalf it calls.
    static let notOfSocket: [(name: String, reason: String)] =
        [(name: actAs, reason: "isn't accepted by the socket, which is for the token's own user")]
        + ofFields.map { (name: $0.name, reason: "isn't accepted by the socket, only by operations") }

    /// Throws if a request for a socket has a header of an operation.
    static func requireNoOperationHeaders(in fields: HTTPFields) throws(RoostError) {
        for header in notOfSocket {
            guard let field = HTTPField.Name(header.name), fields.contains(field) else { continue }
            throw .invalidArgument(header.name, header.reason)
        }
    }

    /// Returns the user on whose behalf a backend acts (SB-12); nil if it acts for itself.
    ///
    /// - Throws: `not_permitted` for a token with a role other than service; `invalid_argument` for an invalid id.
    static func actAs(of request: Request, role: AppRole) throws(RoostError) -> UserID? {
        guard let text = try single(actAs, of: request) else { return nil }
        guard role == .service else {
            throw RoostError(
                .notPermitted, "\(actAs) needs a service's token.", field: actAs, rule: "\(actAs): for the role service")
        }
        let user = UserID(try HeaderText.decoded(text, of: actAs))
        try user.validate(field: actAs)
        return user
    }

    /// - Throws: As ``HeaderText/single(_:of:)``.
    private static func single(_ name: String, of request: Request) throws(RoostError) -> String? {
        guard let field = HTTPField.Name(name) else { return nil }
        return try HeaderText.single(request.headers[values: field], of: name)
    }

    /// Returns a key from a string of RFC 9651, as in the draft, or from the bare text that many clients send.
    private static func key(_ text: String) throws(RoostError) -> String {
        guard text.hasPrefix("\"") else { return text }
        var key = ""
        var rest = text.dropFirst()
        while let character = rest.popFirst(), character != "\"" {
            guard character == "\\" else {
                key.append(character)
                continue
            }
            guard let escaped = rest.popFirst(), escaped == "\"" || escaped == "\\" else {
                throw .invalidArgument("Idempotency-Key", "has a backslash that escapes neither a quote nor a backslash")
            }
            key.append(escaped)
        }
        guard rest.isEmpty, text.count > 1, text.hasSuffix("\"") else {
            throw .invalidArgument("Idempotency-Key", "must be one string in quotes, or text without quotes")
        }
        return key
    }

    private static func version(_ text: String) throws(RoostError) -> Int64 {
        guard text != "*" else {
            throw .invalidArgument("If-Match", "can't be *, which every version matches: leave it out, or give one version")
        }
        guard text.hasPrefix("\""), text.hasSuffix("\""), let version = Int64(text.dropFirst().dropLast()) else {
            throw .invalidArgument("If-Match", "must be one version of the metadata in quotes, such as \"7\"")
        }
        return version
    }
}
