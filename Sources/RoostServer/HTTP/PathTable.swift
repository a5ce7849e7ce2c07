import HTTPTypes
import RoostAPI
import RoostCore

/// The paths and their methods: for 405, `Allow` and preflights.
struct PathTable: Sendable {
    private struct Entry: Sendable {
        let segments: [Substring]
        let method: HTTPRequest.Method
        var literalCount: Int { segments.count { !$0.hasPrefix("{") } }
    }

    /// Grouped by the number of segments.
    private let entries: [Int: [Entry]]

    init() {
        let service = ["/", "/openapi.json", "/asyncapi.json", "/livez", "/readyz", "/metrics", GatewayChannel.socketPath].map {
            (HTTPRequest.Method.get, $0)
        }
        let operations = OperationTable.handled.map { (HTTPRequest.Method($0.method), $0.path) }
        entries = Dictionary(
            grouping: (service + operations).map { Entry(segments: Self.segments(of: $1), method: $0) }, by: \.segments.count)
    }

    /// Returns the methods that a path answers to, in a fixed order; empty for an unknown path.
    ///
    /// A user may have the id `remove`, so `/v1/channels/{channel}/members/remove` also answers to the methods of
    /// `/v1/channels/{channel}/members/{user}`.
    func methods(at path: some StringProtocol) -> [HTTPRequest.Method] { Self.inOrder(entries(at: path)) }

    /// Returns the methods that `Allow` and preflights name for a path. As in OpenAPI, a literal path takes precedence over one with a
    /// parameter in that place, so these are the methods documented for the path.
    func namedMethods(at path: some StringProtocol) -> [HTTPRequest.Method] {
        let matching = entries(at: path)
        let literalCount = matching.map(\.literalCount).max()
        return Self.inOrder(matching.filter { $0.literalCount == literalCount })
    }

    private func entries(at path: some StringProtocol) -> [Entry] {
        let segments = Self.segments(of: String(path))
        return entries[segments.count, default: []].filter { Self.matches($0.segments, segments) }
    }

    private static func inOrder(_ entries: [Entry]) -> [HTTPRequest.Method] {
        let found = Set(entries.map(\.method))
        guard !found.isEmpty else { return [] }
        let known: [HTTPRequest.Method] = [.get, .head, .post, .put, .patch, .delete, .options]
        return known.filter { found.contains($0) || $0 == .options || $0 == .head && found.contains(.get) }
    }

    /// Returns the paths that a router needs for an operation: its own, and those of other operations with a literal in place of its parameter that
    /// don't take its method. A router matches the path before the method, so it would find nothing there.
    static func routes(of type: any Handled.Type) -> [String] {
        let pattern = segments(of: type.path)
        let others = Set(OperationTable.handled.map { $0.path }).subtracting([type.path]).filter { path in
            matches(pattern, segments(of: path)) && !OperationTable.handled.contains { $0.path == path && $0.method == type.method }
        }
        return [type.path] + others.sorted()
    }

    /// Returns the values of an operation's parameters in a path, by name and still percent-encoded.
    static func parameters(of path: String, pattern: String) -> [(name: String, value: Substring)] {
        zip(segments(of: pattern), segments(of: path)).compactMap { name, value in
            name.hasPrefix("{") ? (String(name.dropFirst().dropLast()), value) : nil
        }
    }

    /// Returns whether a path is in its only valid form: `/v1/me/` and `/v1//me` differ from `/v1/me`, and don't exist.
    static func isPlain(_ path: some StringProtocol) -> Bool {
        let slash = UInt8(ascii: "/")
        guard path.utf8.first == slash else { return false }
        var isAfterSlash = false
        for byte in path.utf8 {
            if byte == slash, isAfterSlash { return false }
            isAfterSlash = byte == slash
        }
        return !isAfterSlash || path.utf8.count == 1
    }

    private static func segments(of path: String) -> [Substring] { path.split(separator: "/", omittingEmptySubsequences: false) }

    private static func matches(_ pattern: [Substring], _ path: [Substring]) -> Bool {
        pattern.count == path.count && zip(pattern, path).allSatisfy { $0.hasPrefix("{") ? !$1.isEmpty : $0 == $1 }
    }
}
