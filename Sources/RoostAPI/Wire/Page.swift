/// One page of a list and where the next one begins.
public struct Page<Item: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    /// The rows of the page.
    public var items: [Item]
    /// Give it back to read the next page; absent on the last page. Opaque: don't read or build one.
    public var nextCursor: String?
    /// Give it back to read the page before this one; absent on the first page, and for lists that go one way.
    public var previousCursor: String?

    // derived: init
    public init(items: [Item], nextCursor: String? = nil, previousCursor: String? = nil) {
        self.items = items
        self.nextCursor = nextCursor
        self.previousCursor = previousCursor
    }
}

extension Page: WireWritable where Item: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("items", items)
        json.member("nextCursor", nextCursor)
        json.member("previousCursor", previousCursor)
        json.endObject()
    }
}
