import RoostAPI

/// An operation that answers with a page of a list.
protocol PagedQuery: Operation {
    var limit: Int? { get set }
    var cursor: String? { get set }
}

/// Reads a page of an ordered list that is put together from several, each in the same order.
///
/// A list is asked for short stretches and may answer with rows that the query doesn't want: how many such rows lie between two that it does
/// want doesn't change what a call costs, for a walk stops after so many and says where it stood. It also stops before a page is too large.
struct Walk {
    /// Rows that one call goes past at most.
    static let entriesMax = 5000
    /// Rows of one statement: a page at first, more where few of them are wanted.
    private static let stretchMax = 1000

    /// The name of the query, for its cursors.
    let query: String
    let cursor: Cursor?
    let limit: Int
    /// The order of the list, which a walk back reverses.
    let isDescending: Bool

    /// Begins where the query's cursor says, or at the beginning.
    ///
    /// - Parameters:
    ///   - shape: what a place in the list consists of.
    ///   - limits: how long a page may be.
    /// - Throws: `invalid_argument` for a cursor of another query, or one that isn't one; the refusal of a limit.
    init(
        _ query: some PagedQuery, shape: [SortKey.Kind], limits: (standard: Int, max: Int), isDescending: Bool
    ) throws {
        // A list goes on with a page of another length.
        var named = query
        named.limit = nil
        named.cursor = nil
        self.query = try Cursor.name(of: named)
        cursor = try Cursor(query.cursor, query: self.query, shape: shape)
        limit = try Limits.page(query.limit, limits)
        self.isDescending = isDescending
    }

    /// A row of one of the lists. Without content it isn't one that the query wants.
    struct Entry<Row> {
        let place: [SortKey]
        let row: Row?
    }

    typealias Source<Row> = (Stretch) throws -> [Entry<Row>]

    /// - Parameter item: what the page shows of a row; nil where the row isn't for the caller.
    func page<Row, Item: ContentSized>(through sources: [Source<Row>], item: (Row) throws -> Item?) throws -> Page<Item> {
        let stretch = Stretch(
            start: cursor?.place, includesStart: cursor?.includesPlace ?? false,
            isDescending: isDescending != (cursor?.isBackward ?? false), count: limit + 1)
        var merged = Merged(streams: sources.map { Stream(source: $0, next: stretch) }, order: stretch)
        var found: [(place: [SortKey], item: Item)] = []
        var entryCount = 0
        var sizeBytes = 0
        var end: [SortKey]?
        while found.count <= limit, let next = try merged.next() {
            // A row of two lists is one row.
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

    /// - Parameter end: the place from which the list goes on; nil where it ended.
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

    /// One of the lists, read stretch by stretch.
    private struct Stream<Row> {
        let source: Source<Row>
        /// What is read when nothing is left of what was; nil at the end.
        var next: Stretch?
        var read: ArraySlice<Entry<Row>> = []

        mutating func fill() throws {
            guard read.isEmpty, let stretch = next else { return }
            read = try source(stretch)[...]
            next = read.count < stretch.count ? nil : stretch
            next?.start = read.last?.place
            next?.includesStart = false
            next?.count = min(stretch.count * 4, Walk.stretchMax)
        }
    }

    private struct Merged<Row> {
        var streams: [Stream<Row>]
        let order: Stretch

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
