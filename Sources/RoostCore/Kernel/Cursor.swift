import Foundation
import RoostAPI

/// A place in an ordered list, as an opaque text: base64url of a little JSON.
///
/// It holds the sort values of the row at the place and the row's id, so a page starts there even if rows have moved since. It
/// belongs to one query: with other filters or another order the same values would be another place, so it is refused. It is
/// neither secret nor signed: a made-up cursor only starts at another place of a list that its maker may see anyway.
struct Cursor: Hashable {
    /// The rows that it leads to. The cursor back from an empty page includes the row of its own cursor.
    enum Direction: String, Codable { case after, from, before, upTo }

    var direction: Direction
    var place: [SortKey]

    var isBackward: Bool { direction == .before || direction == .upTo }
    var includesPlace: Bool { direction == .from || direction == .upTo }

    /// The cursor for the rows on the other side of the place.
    var turned: Cursor {
        let opposite: Direction =
            switch direction {
            case .after: .upTo
            case .from: .before
            case .before: .from
            case .upTo: .after
            }
        return Cursor(direction: opposite, place: place)
    }

    private struct Written: Codable {
        var q: String
        var d: Direction
        var k: [SortKey]
    }

    /// Returns the name of a query: of everything that determines its rows and their order.
    ///
    /// - Parameter operation: The query without its limit and its cursor.
    static func name<O: RoostAPI.Operation>(of operation: O) throws -> String {
        let text = String(decoding: try JSONWriter.bytes(of: operation), as: UTF8.self)
        return String(Fingerprint.of("\(O.name) \(text)").prefix(16))
    }

    func text(query: String) throws -> String {
        Base64URL.encode(Data(try JSONWriter.bytes(of: Written(q: query, d: direction, k: place))))
    }

    /// Reads a client's cursor; nil for the first page.
    ///
    /// - Parameter shape: The kinds of the values that the query sorts by.
    init?(_ text: String?, query: String, shape: [SortKey.Kind]) throws(RoostError) {
        guard let text else { return nil }
        guard let written = Self.written(text), written.q == query, written.k.map(\.kind) == shape,
            written.k.allSatisfy(\.isStorable)
        else { throw .invalidArgument("cursor", "isn't a cursor of this query") }
        self.init(direction: written.d, place: written.k)
    }

    init(direction: Direction, place: [SortKey]) {
        self.direction = direction
        self.place = place
    }

    private static func written(_ text: String) -> Written? {
        guard let data = Base64URL.decode(text.utf8) else { return nil }
        return try? JSONDecoder().decode(Written.self, from: data)
    }
}
