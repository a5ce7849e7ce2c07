import NIOCore
import NIOWebSocket
import RoostAPI
import Testing

@testable import RoostServer

/// The end of a socket.
extension SocketSessionTests {
    @Test("an event that waits to share a write goes out before the notice that the server restarts, and before a close")
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

    @Test("I18 a socket without room for its channels gets no further events, and is closed with the code to come back later")
    func noRoom() throws {
        let overloaded = RoostError(.overloaded, "many")
        var session = session()
        _ = session.authenticate("t")
        _ = session.verified(Self.token)
        let begun = [session.endForLimit(overloaded), session.endForLimit(overloaded)]
        #expect(begun == [true, false])
        session.send(event: Self.frame("event"))
        // The welcome precedes the events of the same delivery.
        session.send(reply: Array("welcome".utf8))
        session.send(event: Self.frame("event"))
        let ended = session.closeEnded()
        #expect(
            try ended == [.flush([Self.frame("welcome"), Self.refusal(overloaded)])] + Self.closing(4029, "overloaded"))
        let isBegunAgain = session.endForLimit(overloaded)
        #expect(!isBegunAgain)
        #expect(session.closeEnded() == [])
    }
}
