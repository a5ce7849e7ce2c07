import HTTPTypes
import RoostAPI
import RoostCore

/// Which paths there are and which methods each answers to: for 405, `Allow` and preflights.
struct PathTable: Sendable {
    private struct Entry: Sendable {
        let segments: [Substring]
        let method: HTTPRequest.Method
    }

    private let entries: [Entry]

    init() {
        let service = ["/", "/openapi.json", "/asyncapi.json", "/livez", "/readyz", "/metrics", GatewayChannel.socketPath].map {
            (HTTPRequest.Method.get, $0)
        }
        let operations = OperationTable.handled.map { (HTTPRequest.Method($0.method), $0.path) }
        entries = (service + operations).map { Entry(segments: Self.segments(of: $1), method: $0) }
    }

    /// The methods that a path answers to, in a fixed order; empty for a path that isn't there.
    func methods(at path: some StringProtocol) -> [HTTPRequest.Method] {
        let segments = Self.segments(of: String(path))
        let matching = entries.filter { Self.matches($0.segments, segments) }
        // As in OpenAPI, a path that is written out goes before one with a parameter in that place.
        let literals = matching.map { $0.segments.count { !$0.hasPrefix("{") } }.max()
        let found = Set(matching.filter { entry in entry.segments.count { !$0.hasPrefix("{") } == literals }.map(\.method))
        guard !found.isEmpty else { return [] }
        let known: [HTTPRequest.Method] = [.get, .head, .post, .put, .patch, .delete, .options]
        return known.filter { found.contains($0) || $0 == .options || $0 == .head && found.contains(.get) }
    }

    /// One path for one thing: `/v1/me/` and `/v1//me` are other paths than `/v1/me`, and there is nothing there.
    static func isPlain(_ path: some StringProtocol) -> Bool {
        path == "/" || (path.hasPrefix("/") && !path.hasSuffix("/") && !path.contains("//"))
    }

    private static func segments(of path: String) -> [Substring] { path.split(separator: "/", omittingEmptySubsequences: false) }

    private static func matches(_ pattern: [Substring], _ path: [Substring]) -> Bool {
        pattern.count == path.count && zip(pattern, path).allSatisfy { $0.hasPrefix("{") ? !$1.isEmpty : $0 == $1 }
    }
}
