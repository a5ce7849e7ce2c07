import NIOCore
import NIOWebSocket
import RoostAPI
import Testing

@testable import RoostServer

extension SocketSessionTests {
    @Test("a client that reads slowly isn't taken for one that reads nothing, unless the server is short of room")
    func slowReading() {
        let never = Timestamp(milliseconds: 0)
        let answer = Array(repeating: UInt8(ascii: "x"), count: 1_000_000)
        func behind() -> SocketSession {
            var session = opened()
            session.send(reply: answer)
            session.becameUnwritable(session.takeUnflushed()?.sizeBytes ?? 0, at: Self.time(0))
            return session
        }
        // Ten kilobytes a second, seen in the kernel first and then in the channel.
        var slow = behind()
        for second in 1...100 {
            let kernelBytes = 200_000 - second % 20 * 10_000
            let waiting = WaitingBytes(channelBytes: 1_000_000 - second / 20 * 200_000, kernelBytes: kernelBytes)
            _ = slow.tick(Self.time(Int64(second)), never, .init(), waiting)
        }
        #expect(!slow.isClosing)
        for second in 101...130 {
            _ = slow.tick(Self.time(Int64(second)), never, .init(), WaitingBytes(channelBytes: 0, kernelBytes: 5))
        }
        #expect(!slow.isClosing)
        for second in 131...132 {
            _ = slow.tick(Self.time(Int64(second)), never, .init(), WaitingBytes(channelBytes: 0, kernelBytes: 5))
        }
        #expect(slow.isClosing)

        // Further output doesn't hide that the client reads, and isn't taken for reading.
        for (isReading, isClosed) in [(true, false), (false, true)] {
            var busy = behind()
            var channelBytes = 1_000_000
            for second in 1...40 {
                busy.send(event: Self.frame(String(repeating: "y", count: 10_000)))
                channelBytes += (busy.takeUnflushed()?.sizeBytes ?? 0) - (isReading ? 5000 : 0)
                _ = busy.tick(
                    Self.time(Int64(second)), never, .init(), WaitingBytes(channelBytes: channelBytes, kernelBytes: 100_000))
            }
            #expect(busy.isClosing == isClosed)
        }

        var underPressure = behind()
        let pressure = SocketSession.Pressure(isServerHalfFull: true)
        _ = underPressure.tick(Self.time(1), never, pressure, WaitingBytes(channelBytes: 900_000))
        #expect(
            underPressure.tick(Self.time(2), never, pressure, WaitingBytes(channelBytes: 800_000)).last
                == .close(.init(codeNumber: 4008)))
    }

    @Test("events that a slow client has read since don't count against it")
    func slowEvents() {
        var session = opened()
        session.becameUnwritable(0, at: Self.time(0))
        for second in 1...40 {
            session.send(event: Self.frame(String(repeating: "y", count: 100_000)))
            _ = session.takeUnflushed()
            let actions = session.flushed(.init())
            #expect(!session.isClosing, "\(actions)")
            _ = session.tick(Self.time(Int64(second)), Timestamp(milliseconds: 0), .init(), WaitingBytes(channelBytes: 50_000))
        }
    }

    @Test(
        "I18 a client that leaves early writes unread gets no more of the delivery if there is no room, and is closed at its end, to resume"
    )
    func unreadEarly() {
        let event = Self.frame(String(repeating: "x", count: 300_000))
        for (count, isServerFull) in [(1, true), (4, false)] {
            var session = opened()
            let pressure = SocketSession.Pressure(isServerFull: isServerFull)
            // A client that reads gets all of it.
            for _ in 0..<5 {
                session.send(event: event)
                #expect(session.takeUnflushed() == [event])
                #expect(session.flushedEarly(pressure) == [])
            }
            session.becameUnwritable(10, at: Self.time(1))
            for number in 1...count {
                session.send(event: event)
                #expect(session.takeUnflushed() == [event])
                guard case .hold(let sizeBytes)? = session.flushedEarly(pressure).first else {
                    Issue.record("Unread output doesn't count at once.")
                    return
                }
                #expect(sizeBytes >= 300_000 && number <= count)
            }
            session.send(event: event)
            #expect(session.takeUnflushed() == nil)
            // Room becoming free doesn't bring back missed events. A reply goes out.
            session.send(reply: Array(#"{"reply":1}"#.utf8))
            #expect(session.takeUnflushed() != nil)
            if isServerFull { _ = session.flushedEarly(.init()) }
            session.send(event: event)
            #expect(session.takeUnflushed() == nil)
            #expect(flushed(&session) == Self.closing(4008, "read faster, then resume"))
        }
    }
}
