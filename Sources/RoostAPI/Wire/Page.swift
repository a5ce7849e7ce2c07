/// One page of a list and where the next one begins.
public struct Page<Item: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    /// The rows of the page.
    public var items: [Item]
    /// Give it back to read the next page; absent on the last page. Opaque: don't read or build one.
    public var nextCursor: String?
    /// Give it back to read the page before this one; absent on the first page, and for lists that go one way.
    public var previousCursor: String?
    /// The users whom the items name by their ids alone, each once, in the order of their ids. Absent where there are none, and where the
    /// items have their users.
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
