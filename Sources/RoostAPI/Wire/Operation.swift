/// A request that a client can make: one value, with its route, its response and the permission it needs.
///
/// The HTTP routes, the socket's calls, the SDK's calls, the OpenAPI document and the permission matrix all come from the table of these
/// types. An operation's behaviour is one function in `RoostCore`, in the folder of the same name.
public protocol Operation: Codable, Hashable, Sendable {
    /// The server's response.
    associatedtype Response: Codable & Hashable & Sendable

    /// The name of the operation in a socket call: `message.send`.
    static var name: String { get }
    /// The method of its HTTP route.
    static var method: HTTPMethod { get }
    /// The path, with its fields in braces: `/v1/channels/{channel}/messages`.
    static var path: String { get }
    /// The permission that its caller needs.
    static var permission: Permission { get }
    /// One sentence for the API description.
    static var summary: String { get }
    /// Whether it only reads: it then runs in parallel to the writer and must not change anything.
    static var isReadOnly: Bool { get }
    /// Whether it changes what the caller's connection receives or does. Its effect ends with the connection, so a retry on another one has
    /// to be carried out again.
    static var isConnectionScoped: Bool { get }
    /// The operation's own field by which the server recognises a retry. Nil for operations that take an ``IdempotencyKey`` instead.
    static var deduplicationField: String? { get }

    /// Throws if a field is outside its limits. The SDK calls it before sending, the server before anything else.
    func validate() throws(RoostError)
}

extension Operation {
    public static var isReadOnly: Bool { method == .get }
    public static var isConnectionScoped: Bool { false }
    public static var deduplicationField: String? { nil }

    /// Whether a call may carry an ``IdempotencyKey``: it changes something that outlives the connection, and has no field of its own to
    /// recognise a retry.
    public static var takesKey: Bool { !isReadOnly && !isConnectionScoped && deduplicationField == nil }

    /// Throws `invalid_argument` if a call of the operation takes no key.
    ///
    /// - Parameter field: The key's place in the request.
    public static func requireTakingKey(field: String) throws(RoostError) {
        guard !isReadOnly else { throw .invalidArgument(field, "isn't accepted by \(name), which changes nothing") }
        guard !isConnectionScoped else {
            throw .invalidArgument(field, "isn't accepted by \(name), which applies to one connection only")
        }
        if let deduplicationField {
            throw .invalidArgument(field, "isn't accepted by \(name), which has \(deduplicationField) instead")
        }
    }
}

/// The response of an operation without a result.
public struct Done: Codable, Hashable, Sendable {
    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
}

extension Done: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.endObject()
    }
}
