import Foundation
import NIOCore
import Roost
import RoostAPI
import RoostCore
import RoostTestSupport

@testable import RoostServer

/// The server's end of one connection: what `SocketHandler` does, on a simulated network.
final class ServerSocket {
    enum State {
        case unauthenticated
        case authenticating(Caller)
        case open(Caller)
        case closed
    }

    let connection: Connection
    let id: ConnectionID
    var state = State.unauthenticated
    /// Events between the connection and the welcome, which comes first.
    private var held: [[UInt8]] = []
    private var written: [[UInt8]] = []

    init(_ connection: Connection) {
        self.connection = connection
        id = ConnectionID(rawValue: connection.number)
    }

    func send(event: ByteBuffer) {
        let frames = ServerFrame.texts(in: event)
        switch state {
        case .open: written += frames
        case .authenticating: held += frames
        case .unauthenticated, .closed: break
        }
    }

    /// The first one is the welcome.
    func send(reply: [UInt8]) {
        written.append(reply)
        guard case .authenticating(let caller) = state else { return }
        state = .open(caller)
        written += held
        held = []
    }

    func write(bytes: [UInt8]) { written.append(bytes) }

    func write(_ value: some Encodable) { if let bytes = try? JSONWriter.bytes(of: value) { write(bytes: bytes) } }

    /// Puts what was written on the network. Events are told of.
    func transmit(_ delivered: (StreamID, Seq, UserID) -> Void) {
        let frames = written
        written = []
        for frame in frames {
            if case .open(let caller) = state, let (stream, seq) = Self.position(of: frame) { delivered(stream, seq, caller.user) }
            connection.sendToClient(.message(frame))
        }
    }

    /// The stream and seq of an event, which stand near its beginning.
    private static func position(of frame: [UInt8]) -> (StreamID, Seq)? {
        guard frame.starts(with: #"{"watching""#.utf8) else { return nil }
        let head = String(decoding: frame.prefix(400), as: UTF8.self)
        guard let match = head.firstMatch(of: #/"stream":"([^"]*)","seq":(\d+)/#), let stream = StreamID(String(match.1)),
            let seq = Seq(match.2)
        else { preconditionFailure("An event without a position: \(head)") }
        return (stream, seq)
    }
}
