public import Foundation
public import RoostAPI

/// Carries frames between the client and the server. ``WebSocketTransport`` is the one for apps; tests and simulations have their own.
public protocol Transport: Sendable {
    /// Checks an address before the first connection to it.
    ///
    /// - Throws: `RoostError` with `invalid_argument` if no attempt can succeed with it.
    func validate(_ url: URL) throws(RoostError)

    /// The most bytes of one message that it can send. A longer message isn't passed to it: the client refuses that operation and continues with the next.
    var outgoingSizeBytesMax: Int { get }

    /// Runs one connection, from its opening to its end.
    ///
    /// - Parameters:
    ///   - url: Where to connect.
    ///   - outgoing: The commands, in order. The connection is closed when it ends.
    ///   - receive: Called with every event in order: first `opened`, last `closed`, each exactly once; only `closed` if it never opened.
    ///     Nothing more is read from the network until it returns.
    ///
    /// Cancelling the task ends the connection.
    func run(
        url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void) async
}

extension Transport {
    /// Accepts any address.
    public func validate(_ url: URL) throws(RoostError) {}

    /// As much as the server accepts: `Limits.messageSizeBytes`.
    public var outgoingSizeBytesMax: Int { Limits.messageSizeBytes }
}

/// A command to send something.
public enum TransportCommand: Hashable, Sendable {
    /// A text message in UTF-8.
    case message([UInt8])
    /// A ping of the WebSocket.
    case ping
}

/// An event of a transport's connection.
public enum TransportEvent: Hashable, Sendable {
    /// The connection is open.
    case opened
    /// A text message in UTF-8, reassembled if it arrived in fragments.
    case message([UInt8])
    /// Activity without content: a ping or a pong.
    case heard
    /// The end, with the WebSocket's close code if there was one, and a reason for logs. The cause says where to look if there was no code.
    case closed(code: UInt16?, reason: String, cause: WaitingReason.Cause = .network)
}
