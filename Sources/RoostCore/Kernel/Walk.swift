import RoostAPI

/// An operation that answers with a page of a list.
protocol PagedQuery: Operation {
    var limit: Int? { get set }
    var cursor: String? { get set }
}

/// Reads a page of an ordered list that is merged from several, each in the same order.
///
/// A list is read by one ``KeysetPage`` after another, and may return rows that don't match the query. Their number doesn't
/// raise the cost of a call, since a walk stops at a limit and returns where it stopped. It also stops before the answer's
/// page gets too large.
struct Walk {
    /// The maximum number of rows that one call passes.
    static let entriesMax = 5000
    /// The maximum number of rows per statement: those of the answer's page at first, more if few of them match.
    private static let rowsPerStatementMax = 1000

    /// The query's name, for its cursors.
    let query: String
    let cursor: Cursor?
    let limit: Int
    /// The order of the list, which a backward walk reverses.
    let isDescending: Bool

    /// Starts at the query's cursor, or at the beginning.
    ///
    /// - Parameters:
    ///   - shape: The kinds of the values of a place in the list.
    ///   - limits: The limits of a page's length.
    /// - Throws: `invalid_argument` for an invalid cursor or one of another query; the refusal of a limit.
    init(
        _ query: some PagedQuery, shape: [SortKey.Kind], limits: (standard: Int, max: Int), isDescending: Bool
    ) throws {
        // The next page of a list may have another length.
        var named = query
        named.limit = nil
        named.cursor = nil
        self.query = try Cursor.name(of: named)
        cursor = try Cursor(query.cursor, query: self.query, shape: shape)
        limit = try Limits.page(query.limit, limits)
        self.isDescending = isDescending
    }

    /// A row of one of the lists. One without content doesn't match the query.
    struct Entry<Row> {
        let place: [SortKey]
        let row: Row?
        /// Whether the list may go on after it, although the source returned fewer rows than it was asked for.
        var isFollowed = false
    }

    typealias Source<Row> = (KeysetPage) throws -> [Entry<Row>]

    /// - Parameter item: Returns a row's item on the page; nil if the row isn't for the caller.
    func page<Row, Item: ContentSized>(through sources: [Source<Row>], item: (Row) throws -> Item?) throws -> Page<Item> {
        let first = KeysetPage(
            start: cursor?.place, includesStart: cursor?.includesPlace ?? false,
            isDescending: isDescending != (cursor?.isBackward ?? false), count: limit + 1)
        var merged = Merged(streams: sources.map { Stream(source: $0, next: first) }, order: first)
        var found: [(place: [SortKey], item: Item)] = []
        var entryCount = 0
        var sizeBytes = 0
        var end: [SortKey]?
        while found.count <= limit, let next = try merged.next() {
            // A row found in two lists counts once.
            if let row = next.row, found.last?.place != next.place, let item = try item(row) {
                sizeBytes += item.contentSizeBytes
                if let last = found.last, sizeBytes > Limits.pageContentBytes {
                    end = last.place
                    break
                }
                found.append((next.place, item))
            }
            entryCount += 1
            if entryCount >= Self.entriesMax {
                end = next.place
                break
            }
        }
        if found.count > limit {
            found.removeLast()
            end = found.last?.place
        }
        return try page(found, end: end)
    }

    /// - Parameter end: The place where the list continues; nil at its end.
    private func page<Item>(_ found: [(place: [SortKey], item: Item)], end: [SortKey]?) throws -> Page<Item> {
        let isBackward = cursor?.isBackward ?? false
        let onward = end.map { Cursor(direction: isBackward ? .before : .after, place: $0) }
        let back: Cursor? = cursor.map { cursor in
            found.first.map { Cursor(direction: isBackward ? .after : .before, place: $0.place) } ?? cursor.turned
        }
        let items = found.map(\.item)
        return Page(
            items: isBackward ? items.reversed() : items,
            nextCursor: try (isBackward ? back : onward)?.text(query: query),
            previousCursor: try (isBackward ? onward : back)?.text(query: query))
    }

    /// One of the lists, read one ``KeysetPage`` after another.
    private struct Stream<Row> {
        let source: Source<Row>
        /// The page to read once the current rows are used up; nil at the end.
        var next: KeysetPage?
        var read: ArraySlice<Entry<Row>> = []

        mutating func fill() throws {
            guard read.isEmpty, let page = next else { return }
            read = try source(page)[...]
            next = read.count < page.count && read.last?.isFollowed != true ? nil : page
            next?.start = read.last?.place
            next?.includesStart = false
            next?.count = min(page.count * 4, Walk.rowsPerStatementMax)
        }
    }

    private struct Merged<Row> {
        var streams: [Stream<Row>]
        let order: KeysetPage

        mutating func next() throws -> Entry<Row>? {
            for index in streams.indices { try streams[index].fill() }
            let first = streams.indices.filter { !streams[$0].read.isEmpty }.min { one, other in
                guard let left = streams[one].read.first, let right = streams[other].read.first else { return false }
                return order.precedes(left.place, right.place)
            }
            return first.flatMap { streams[$0].read.popFirst() }
        }
    }
}
