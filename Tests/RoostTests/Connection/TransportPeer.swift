import Foundation
import RoostAPI

@testable import Roost

/// The other side of a transport's connections, for the cases that every transport passes.
///
/// It sends texts back. Some are commands: `bye` has it close the connection with a code and a reason, `break` has the connection break,
/// and `flood` has it send ``floodCount`` messages of 1 MiB.
protocol TransportPeer: Sendable {
    /// Runs one connection of the transport to it.
    func run(_ outgoing: AsyncStream<TransportCommand>, _ receive: @escaping @Sendable (TransportEvent) async -> Void) async
    /// What the peer saw of that connection.
    var log: PeerLog { get }
    func stop() async throws
}

/// What a peer saw of a connection.
struct PeerLog: Sendable {
    /// Whether a client has started to connect.
    var isReached = false
    /// The texts that arrived, in order.
    var texts: [String] = []
    /// Whether the other side has said goodbye.
    var hasHeardGoodbye = false
    /// Whether the connection has ended.
    var isLeft = false
    /// The messages of a flood that the other side, or the network in between, has accepted.
    var takenCount = 0
    /// Whether all messages of the flood have been written.
    var hasFlooded = false
}

/// How a peer behaves.
enum PeerBehaviour: Sendable {
    /// It sends texts back, and answers pings.
    case answers
    /// The same, without answers to pings.
    case ignoresPings
    /// It accepts connections, and never answers.
    case silent
    /// It refuses WebSockets.
    case refuses
    /// It doesn't exist.
    case absent
}

extension TransportPeer {
    static var floodCount: Int { 64 }
    static var goodbye: SocketClosed { SocketClosed(code: 4001, reason: "the token has expired") }

    /// A message of 1 MiB, which is the most that a server accepts.
    static func longText(_ number: Int) -> String {
        let beginning = "\(number) "
        let rest = [UInt8](repeating: UInt8(ascii: "x"), count: Limits.messageSizeBytes - beginning.utf8.count)
        return beginning + String(decoding: rest, as: UTF8.self)
    }
}

/// The transports, each with a peer.
enum TestedTransport: CaseIterable, Sendable {
    /// ``WebSocketTransport``, with a server on this machine.
    case webSocket
    /// ``MessageSocket/run(_:_:)``, which is `URLSessionTransport` except for the calls of URLSession, with a stand-in for these.
    case messageSocket

    func peer(_ behaviour: PeerBehaviour = .answers) async throws -> any TransportPeer {
        switch self {
        case .webSocket: try await WebSocketPeer.start(behaviour)
        case .messageSocket: StandInSocket(behaviour)
        }
    }
}
