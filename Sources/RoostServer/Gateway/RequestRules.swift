import NIOHTTP1
import RoostAPI

/// Rules for the head of a request (RFC 9112), beyond what the parser checks.
enum RequestRules {
    /// A refused head. Its connection ends, because it is unclear where the next request begins or because its body isn't wanted.
    struct Refusal: Error {
        let problem: Problem

        init(_ message: String, field: String? = nil, status: Int = 400) {
            problem = Problem(RoostError(.invalidArgument, message, field: field), status: status)
        }
        init(_ error: RoostError) { problem = Problem(error) }
    }

    /// Checks a head, and converts its target to the only form that is served: a path that begins with a slash, and a query.
    static func check(_ head: inout HTTPRequestHead) throws(Refusal) {
        try checkMarks(head)
        try checkHost(head)
        try checkAuthorization(head)
        try checkLength(head)
        try checkExpectation(&head)
        head.uri = try target(of: head)
    }

    /// Checks that values are cheap to compare (``CombiningMarks``).
    private static func checkMarks(_ head: HTTPRequestHead) throws(Refusal) {
        do throws(RoostError) {
            for (name, value) in head.headers { try CombiningMarks.requireWithinLimit(in: value, field: name) }
        } catch {
            throw Refusal(error)
        }
    }

    private static func checkHost(_ head: HTTPRequestHead) throws(Refusal) {
        let hosts = head.headers["host"]
        guard hosts.count == 1 || hosts.isEmpty && head.version == .http1_0 else {
            throw Refusal("A request must have exactly one Host.", field: "Host")
        }
        let isPlain = hosts.allSatisfy { host in
            host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"/?#@,\\\"<>".utf8.contains($0) }
        }
        guard isPlain else { throw Refusal("Host must be a host with or without a port.", field: "Host") }
    }

    /// Checks that there is at most one token; otherwise a proxy in front could see a different caller than this server.
    private static func checkAuthorization(_ head: HTTPRequestHead) throws(Refusal) {
        guard head.headers["authorization"].count <= 1 else {
            throw Refusal("Authorization is given more than once.", field: "Authorization")
        }
    }

    /// Checks that the end of the body is given once and in one way; otherwise a proxy in front could see different requests than this server
    /// (request smuggling).
    private static func checkLength(_ head: HTTPRequestHead) throws(Refusal) {
        let lengths = head.headers["content-length"]
        let codings = head.headers["transfer-encoding"]
        guard lengths.isEmpty || codings.isEmpty else {
            throw Refusal("A request must not have both a Content-Length and a Transfer-Encoding.", field: "Content-Length")
        }
        guard lengths.count <= 1 else { throw Refusal("Content-Length is given more than once.", field: "Content-Length") }
        if !codings.isEmpty {
            guard codings.count == 1, codings.allSatisfy({ $0.lowercased() == "chunked" }) else {
                throw Refusal("The only supported Transfer-Encoding is chunked.", field: "Transfer-Encoding", status: 501)
            }
            guard head.version == .http1_1 else {
                throw Refusal("HTTP/1.0 has no Transfer-Encoding.", field: "Transfer-Encoding")
            }
        }
        guard let text = lengths.first else { return }
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), !text.isEmpty else {
            throw Refusal("Content-Length must be a number of bytes.", field: "Content-Length")
        }
        // A number too long for `Int` is above the limit too.
        guard let length = Int(text), length <= Limits.bodySizeBytes else {
            throw Refusal(.limitExceeded("body", limit: Limits.bodySizeBytes, unit: "bytes"))
        }
    }

    private static func checkExpectation(_ head: inout HTTPRequestHead) throws(Refusal) {
        let expectations = head.headers["expect"]
        guard !expectations.isEmpty else { return }
        guard expectations.allSatisfy({ $0.lowercased() == "100-continue" }) else {
            throw Refusal("The only supported expectation is 100-continue.", field: "Expect", status: 417)
        }
        // A client without a body doesn't wait, and HTTP/1.0 has no such answer.
        let hasBody = head.headers["content-length"].contains { $0 != "0" } || head.headers.contains(name: "transfer-encoding")
        if !hasBody || head.version != .http1_1 { head.headers.remove(name: "expect") }
    }

    private static func target(of head: HTTPRequestHead) throws(Refusal) -> String {
        var target = head.uri[...]
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") }) else {
            throw Refusal("The request's target must be a path, percent-encoded, without a fragment.")
        }
        if head.method == .CONNECT || target == "*" { return "/" + String(target.drop { $0 == "/" }) }
        // The form for proxies: the server's own address precedes the path (RFC 9112 §3.2.2).
        for scheme in ["http://", "https://"] where target.lowercased().hasPrefix(scheme) {
            target = target.dropFirst(scheme.count).drop { $0 != "/" && $0 != "?" }
            if !target.hasPrefix("/") { return "/" + String(target) }
        }
        guard target.hasPrefix("/") else { throw Refusal("The request's target must begin with a slash.") }
        return String(target)
    }
}
