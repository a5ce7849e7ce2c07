import RoostAPI

/// The kinds of fuzzing. Each makes its inputs by its own grammar and mutates them; the server's own code reads them.
public enum FuzzKind: String, CaseIterable, Sendable {
    /// Bytes of a connection around the moment in which HTTP becomes a socket, cut anywhere.
    case connection
    /// JSON, valid and nearly so.
    case json
    /// Messages of a socket: frames of every operation, and as many of those that read their own fields. Foundation must read the same.
    case message
    /// Packets of the bus between nodes.
    case packet
    /// Presence between nodes.
    case presence
    /// Ephemeral news between nodes: typing, receipts, signals.
    case news
    /// Operations, with their fields changed, performed on a database.
    case operation
    /// Requests over HTTP to a real server, and sockets, with a token and without.
    case wire
}

/// An input that broke a rule. A crash isn't caught: the last printed line has its seed.
public struct FuzzFinding: Error, CustomStringConvertible, Sendable {
    public let input: [UInt8]
    public let what: String

    init(_ what: String, _ input: [UInt8]) {
        self.what = what
        self.input = input
    }

    public var description: String { "\(what): \(String(decoding: input.prefix(2000), as: UTF8.self).debugDescription)" }

    /// The input in the corpus's form.
    public var hex: String {
        let digits = Array("0123456789abcdef")
        return String(input.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}
