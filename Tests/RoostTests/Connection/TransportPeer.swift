import Foundation
import RoostAPI

@testable import Roost

/// The other side of a transport's connections, as the cases that every transport passes need it.
///
/// It sends texts back. Some have a meaning: `bye` has it close the connection with a code and a reason, `break` has the connection break, and
/// `flood` has it send ``floodCount`` messages of 1 MiB.
protocol TransportPeer: Sendable {
    /// Runs one connection of the transport to it.
    func run(_ outgoing: AsyncStream<TransportCommand>, _ receive: @escaping @Sendable (TransportEvent) async -> Void) async
    /// What has become of that connection.
    var log: PeerLog { get }
    func stop() async throws
}

/// What a peer has seen of a connection.
struct PeerLog: Sendable {
    /// Whether somebody has begun to connect.
    var isReached = false
    /// The texts that came, in their order.
    var texts: [String] = []
    /// Whether the other side has said goodbye.
    var hasHeardGoodbye = false
    /// Whether the connection has ended.
    var isLeft = false
    /// The messages of a flood that the other side, or the network between, has taken.
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
    /// It takes connections, and never says anything.
    case silent
    /// It refuses WebSockets.
    case refuses
    /// It isn't there.
    case absent
}

extension TransportPeer {
    static var floodCount: Int { 64 }
    static var goodbye: SocketClosed { SocketClosed(code: 4001, reason: "the token has expired") }

    /// A message of 1 MiB, which is all that a server takes.
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
    /// ``MessageSocket/run(_:_:)``, which is `URLSessionTransport` but for the calls of URLSession, with a stand-in for these.
    case messageSocket

    func peer(_ behaviour: PeerBehaviour = .answers) async throws -> any TransportPeer {
        switch self {
        case .webSocket: try await WebSocketPeer.start(behaviour)
        case .messageSocket: StandInSocket(behaviour)
        }
    }
}
