import Foundation
import HTTPTypes
import RoostAPI

/// The web pages that may read answers, by their origins (the Fetch standard's CORS protocol).
///
/// Roost uses no cookies: a page has to hold a token itself. So credentials in the sense of that protocol are never allowed, and `*` gives a page
/// no more access than any program with a token.
public struct AllowedOrigins: Sendable, Hashable {
    /// An invalid origin.
    public struct Unusable: Error, CustomStringConvertible {
        /// The origin as it was given.
        public let origin: String
        public var description: String {
            "\(origin) isn't an origin: give a scheme, a host and optionally a port, such as https://app.example.com, or * for any."
        }
    }

    private let origins: Set<String>

    /// Pages of other origins may read nothing.
    public static let none = AllowedOrigins()

    private init() { origins = [] }

    /// - Throws: ``Unusable`` for an origin that a browser would never send.
    public init(_ origins: [String]) throws(Unusable) {
        for origin in origins where !Self.isUsable(origin) { throw Unusable(origin: origin) }
        self.origins = Set(origins)
    }

    private static func isUsable(_ origin: String) -> Bool {
        if origin == "*" { return true }
        guard origin.lowercased() == origin, let url = URLComponents(string: origin), let scheme = url.scheme,
            url.host?.isEmpty == false
        else { return false }
        let host = origin.dropFirst(scheme.count + 3)
        guard host.utf8.allSatisfy({ "abcdefghijklmnopqrstuvwxyz0123456789.-:[]".utf8.contains($0) }) else { return false }
        let parts = [url.user, url.password, url.query, url.fragment]
        return ["http", "https"].contains(scheme) && url.path.isEmpty && parts.allSatisfy { $0 == nil }
    }

    var isEmpty: Bool { origins.isEmpty }
    private var allowsAll: Bool { origins.contains("*") }

    /// The headers that a page's script may send in addition to those that are always allowed.
    private static let requestHeaders =
        (["Authorization", "Content-Type", RequestHeaders.actAs] + RequestHeaders.ofFields.map(\.name)).joined(separator: ", ")
    /// The headers of an answer that a script may read.
    private static let exposedHeaders = "Retry-After, WWW-Authenticate, Allow"
    /// How long a browser may cache a preflight, in seconds.
    private static let maxAge = "7200"

    /// Adds the CORS headers that the answer to any request needs.
    func add(to headers: inout HTTPFields, origin: String?) {
        guard !isEmpty else { return }
        if allowsAll {
            headers[.accessControlAllowOrigin] = "*"
        } else {
            // A cache must not give one page's answer to another.
            headers.append(HTTPField(name: .vary, value: "Origin"))
            guard let origin, origins.contains(origin) else { return }
            headers[.accessControlAllowOrigin] = origin
        }
        headers[.accessControlExposeHeaders] = Self.exposedHeaders
    }

    /// The CORS headers of an answer that is made before the request is parsed.
    func fields(origin: String?) -> [(name: String, value: String)] {
        var fields = HTTPFields()
        add(to: &fields, origin: origin)
        return fields.map { ($0.name.rawName, $0.value) }
    }

    /// Adds the further headers of the answer to a preflight. Call ``add(to:origin:)`` first.
    func addPreflight(to headers: inout HTTPFields, methods: [HTTPRequest.Method]) {
        guard headers[.accessControlAllowOrigin] != nil else { return }
        headers[.accessControlExposeHeaders] = nil
        headers[.accessControlAllowMethods] = methods.map(\.rawValue).joined(separator: ", ")
        headers[.accessControlAllowHeaders] = Self.requestHeaders
        headers[.accessControlMaxAge] = Self.maxAge
    }
}
