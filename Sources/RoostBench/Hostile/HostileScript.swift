import Foundation
import RoostAPI

/// A way to make a server hold memory: the bytes that a socket sends without reading.
enum HostileScript: CaseIterable, Sendable {
    // Without authentication.
    /// A connection, and nothing else.
    case silence
    /// A request head without its end, of the largest allowed size.
    case head
    /// The first frame, of the largest allowed size, without its last byte.
    case firstFrame
    /// Fragments of a first message.
    case firstFragments
    /// Requests for public documents.
    case descriptions

    // With authentication.
    /// Hundreds of calls for the largest page.
    case pages
    /// The same, read a little at a time.
    case pagesReadSlowly
    /// Pipelined requests for the largest page over HTTP.
    case requests
    /// A body of the largest size, without its last byte.
    case body
    /// The largest frame, without its last byte.
    case frame
    /// A message in fragments, of the largest allowed size, without its last fragment.
    case fragments
    /// Calls of the largest size with the smallest answers.
    case largeCalls
    /// Messages of the largest size, into a channel whose events come back here and go to all the others.
    case sends
    /// Only leaves the events of that channel unread.
    case events
    /// Pings, each of which requires a pong.
    case pings
    /// Frames that aren't calls, each of which is answered.
    case refusals

    /// The channel whose pages are as large as a page may be.
    static let largeChannel = "large"
    /// The channel that all hostile users are members of.
    static let busyChannel = "busy"

    var readsSlowly: Bool { self == .pagesReadSlowly }

    /// Whether it can go on sending indefinitely. The others would be complete if they continued.
    var isEndless: Bool {
        switch self {
        case .descriptions, .pages, .pagesReadSlowly, .requests, .largeCalls, .sends, .pings, .refusals: true
        case .silence, .head, .firstFrame, .firstFragments, .body, .frame, .fragments, .events: false
        }
    }

    /// Returns the first bytes of a connection.
    func opening(token: String) -> [UInt8] {
        switch self {
        case .silence, .requests, .descriptions: []
        case .head: Array("GET /v1/socket HTTP/1.1\r\nHost: 127.0.0.1\r\n".utf8)
        case .firstFrame, .firstFragments: LoadSocket.upgradeRequest(token: nil)
        case .body:
            Array(
                """
                POST /v1/channels HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \(token)\r\nContent-Type: application/json\r\n\
                Content-Length: \(Limits.bodySizeBytes)\r\n\r\n
                """.utf8)
        default: LoadSocket.upgradeRequest(token: token)
        }
    }

    /// Returns the following bytes, sent once or repeatedly.
    func rest(token: String) -> [UInt8] {
        switch self {
        case .silence, .events: []
        case .head:
            (0..<1).flatMap { Array("X-\($0): ".utf8) + Self.letters(7900) + Array("\r\n".utf8) }
        case .firstFrame: LoadSocket.frame(Self.letters(16 << 10)).dropLast()
        case .firstFragments:
            LoadSocket.frame(Self.letters(15_000), isFinal: false) + LoadSocket.frame(Self.letters(1300), opcode: 0, isFinal: false)
        case .pages, .pagesReadSlowly:
            Self.calls(640) {
                #"{"call":\#($0),"operation":"message.list","with":{"channel":"\#(Self.largeChannel)","limit":100}}"#
            }
        case .requests:
            Array(
                repeating: Array(
                    """
                    GET /v1/channels/\(Self.largeChannel)/messages?limit=100 HTTP/1.1\r\nHost: 127.0.0.1\r\n\
                    Authorization: Bearer \(token)\r\n\r\n
                    """.utf8), count: 100
            ).flatMap { $0 }
        case .descriptions:
            (0..<100).flatMap { Array("GET /\($0 % 3 == 2 ? "metrics" : "openapi.json") HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8) }
        case .body: Self.letters(Limits.bodySizeBytes - 1)
        case .frame: LoadSocket.frame(Self.letters(Limits.messageSizeBytes)).dropLast()
        case .fragments:
            LoadSocket.frame(Self.letters(60_000), isFinal: false)
                + (0..<16).flatMap { _ in LoadSocket.frame(Self.letters(60_000), opcode: 0, isFinal: false) }
        case .largeCalls:
            Self.calls(64) { #"{"call":\#($0),"operation":"user.me","\#(String(repeating: "n", count: 60_000))":1}"# }
        case .sends:
            // Written repeatedly on one socket while earlier calls aren't answered: their numbers must all differ.
            Self.calls(16) { _ in
                #"""
                {"call":\#(Int64.random(in: 1 ... .max)),"operation":"message.send","with":{"channel":"\#(Self.busyChannel)",\#
                "clientId":"\#(UInt64.random(in: 0 ... .max))","text":"\#(String(repeating: "t", count: 20_000))"}}
                """#
            }
        case .pings: (0..<500).flatMap { _ in LoadSocket.frame(Self.letters(125), opcode: 9) }
        case .refusals: (0..<500).flatMap { _ in LoadSocket.frame(Self.letters(100)) }
        }
    }

    private static func letters(_ count: Int) -> [UInt8] { [UInt8](repeating: UInt8(ascii: "a"), count: count) }

    private static func calls(_ count: Int, _ text: (Int) -> String) -> [UInt8] {
        (1...count).flatMap { LoadSocket.frame(Array(text($0).utf8)) }
    }
}
