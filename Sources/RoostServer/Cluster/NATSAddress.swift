#if Cluster
import Foundation

/// The addresses of the NATS servers, and the credentials: the value of `--bus nats://…`.
///
/// `nats://user:password@host:port`, or `tls://` for TLS with the certificates that the machine trusts; several are separated by commas. A
/// user without a password is a token. Errors repeat nothing of the text: a mistyped address may contain a secret anywhere.
struct NATSAddress: Sendable, Equatable {
    /// `host:port` of each server, without credentials: this may be logged.
    var servers: [String] = []
    var isSecure = false
    var credentials: Credentials?

    enum Credentials: Sendable, Equatable {
        case user(String, password: String)
        case token(String)
    }

    /// The URLs for the library. They contain no credentials, so it can't print them.
    var urls: [String] { servers.map { (isSecure ? "tls://" : "nats://") + $0 } }

    static let defaultPort = 4222

    init(_ text: String) throws(BusFailure) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingCharacters(in: .whitespaces) }
        for (index, part) in parts.enumerated() {
            let place = parts.count == 1 ? "the NATS address" : "NATS address \(index + 1) of \(parts.count)"
            try read(part, isFirst: index == 0, place: place)
        }
    }

    private mutating func read(_ part: String, isFirst: Bool, place: String) throws(BusFailure) {
        let scheme: Bool
        if part.hasPrefix("nats://") {
            scheme = false
        } else if part.hasPrefix("tls://") {
            scheme = true
        } else {
            throw BusFailure(message: "\(place) must begin with nats:// or tls://")
        }
        if !isFirst, scheme != isSecure { throw BusFailure(message: "NATS addresses are all nats:// or all tls://, not both") }
        isSecure = scheme

        var rest = part.drop { $0 != "/" }.dropFirst(2)
        if let at = rest.lastIndex(of: "@") {
            let found = try Self.credentials(of: rest[..<at], place: place)
            if let credentials, credentials != found {
                throw BusFailure(message: "all NATS addresses must have the same user and password")
            }
            credentials = found
            rest = rest[rest.index(after: at)...]
        }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        servers.append(try Self.server(of: rest, place: place))
    }

    private static func credentials(of text: Substring, place: String) throws(BusFailure) -> Credentials {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let decoded = parts.compactMap { String($0).removingPercentEncoding }
        guard decoded.count == parts.count, let first = decoded.first, !first.isEmpty else {
            throw BusFailure(
                message: "\(place) has an unreadable user before its @; special characters are written as %40 and the like")
        }
        // A zero byte would end the string early for the library, which is written in C.
        guard !decoded.contains(where: { $0.utf8.contains(0) }) else {
            throw BusFailure(message: "\(place) has a zero byte in its user or password")
        }
        return decoded.count == 2 ? .user(first, password: decoded[1]) : .token(first)
    }

    /// `host`, `host:port` or `[IPv6]:port`.
    private static func server(of text: Substring, place: String) throws(BusFailure) -> String {
        var host = text
        var port = defaultPort
        let afterBracket = text.lastIndex(of: "]") ?? text.startIndex
        if let colon = text[afterBracket...].lastIndex(of: ":") {
            guard let number = Int(text[text.index(after: colon)...]), (1...65_535).contains(number) else {
                throw BusFailure(message: "\(place) has a port that isn't a number from 1 to 65535")
            }
            host = text[..<colon]
            port = number
        }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let name = isBracketed ? host.dropFirst().dropLast() : host
        let isValid = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"): true
            case UInt8(ascii: ":"), UInt8(ascii: "%"): isBracketed
            default: false
            }
        }
        guard !name.isEmpty, isValid else {
            throw BusFailure(message: "\(place) must name a host: nats://host:port")
        }
        return "\(host):\(port)"
    }
}
#endif
