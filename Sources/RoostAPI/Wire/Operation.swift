/// Something a client can ask for: one value, with its route, its answer and the permission it needs.
///
/// The HTTP routes, the socket's calls, the SDK's calls, the OpenAPI document and the permission matrix all come from the table of
/// these types. What an operation does is one function in `RoostCore`, in the folder of the same name.
public protocol Operation: Codable, Hashable, Sendable {
    associatedtype Response: Codable & Hashable & Sendable

    /// The name of the operation in a socket call: `messages.send`.
    static var name: String { get }
    static var method: HTTPMethod { get }
    /// The path, with the fields that stand in it in braces: `/v1/channels/{channel}/messages`.
    static var path: String { get }
    static var permission: Permission { get }
    /// One sentence for the API description.
    static var summary: String { get }
    /// Whether it only reads: it then runs beside the writer and may not change anything.
    static var isReadOnly: Bool { get }

    /// Throws when a field is outside its limits. The SDK calls it before sending, the server before anything else.
    func validate() throws(RoostError)
}

extension Operation {
    public static var isReadOnly: Bool { method == .get }
}

/// The methods of HTTP that operations use.
public enum HTTPMethod: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
}

/// What a caller may be allowed to do (ledger §8.4). The server's permission table says who is; no handler decides by itself.
public enum Permission: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case userRead = "user.read"
    case userUpdateSelf = "user.updateSelf"
    case userManage = "user.manage"
    case channelCreate = "channel.create"
    case channelRead = "channel.read"
    case channelWatch = "channel.watch"
    case channelUpdate = "channel.update"
    case channelDelete = "channel.delete"
    case memberJoin = "member.join"
    case memberLeave = "member.leave"
    case memberList = "member.list"
    case messageSend = "message.send"
    case messageEditOwn = "message.editOwn"
    case messageEditAny = "message.editAny"
    case messageDeleteOwn = "message.deleteOwn"
    case messageDeleteAny = "message.deleteAny"
    case historyRead = "history.read"
    case readMark = "read.mark"
    case streamRead = "stream.read"
}

/// The answer of an operation that has nothing to tell but that it was done.
public struct Done: Codable, Hashable, Sendable {
    public init() {}
}

/// One page of a list and where the next one begins.
public struct Page<Item: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    public var items: [Item]
    /// Give it back to read the next page; absent on the last page. Opaque: don't read or build one.
    public var nextCursor: String?

    public init(items: [Item], nextCursor: String? = nil) {
        self.items = items
        self.nextCursor = nextCursor
    }
}
