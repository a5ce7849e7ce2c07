/// One page of a list and where the next one begins.
public struct Page<Item: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    /// The rows of the page.
    public var items: [Item]
    /// The cursor of the next page; absent on the last page. Opaque: don't parse or build one.
    public var nextCursor: String?
    /// The cursor of the previous page; absent on the first page, and for lists that only go forward.
    public var previousCursor: String?
    /// The users that the items name only by id, each once, ordered by id. Absent if there are none, and if the items have their users.
    public var users: [UserSummary]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(items: [Item], nextCursor: String? = nil, previousCursor: String? = nil, users: [UserSummary]? = nil) {
        self.items = items
        self.nextCursor = nextCursor
        self.previousCursor = previousCursor
        self.users = users
    }
}

extension Page: WireWritable where Item: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("items", items)
        json.member("nextCursor", nextCursor)
        json.member("previousCursor", previousCursor)
        json.member("users", users)
        json.endObject()
    }
}
