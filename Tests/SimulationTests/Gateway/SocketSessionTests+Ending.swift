import NIOCore
import NIOWebSocket
import RoostAPI
import Testing

@testable import RoostServer

/// The end of a socket.
extension SocketSessionTests {
    @Test("An event that waits for others to share its write goes out before the word that the server restarts, and before a close")
    func endsWithWhatWaits() {
        let event = Self.frame("event")
        var draining = opened()
        draining.send(event: event)
        let restart = Self.frame(#"{"closing":{"reason":"restart","retryAfterMilliseconds":2500}}"#)
        #expect(draining.drain(after: .seconds(2)) == [.restart(after: .seconds(2)), .flush([event, restart])])
        draining.send(event: event)
        let pieces = draining.restart().flatMap { if case .flush(let bytes) = $0 { bytes.pieces } else { [ByteBuffer]() } }
        #expect(pieces.first == event && pieces.count == 2)

        var expired = opened()
        expired.send(event: event)
        let last = expired.tick(Self.time(2), Timestamp(milliseconds: 1_000_000), .init())
        let sent = last.flatMap { if case .flush(let bytes) = $0 { bytes.pieces } else { [ByteBuffer]() } }
        #expect(sent.first == event && last.last == .close(.init(codeNumber: 4002)))
    }
}
