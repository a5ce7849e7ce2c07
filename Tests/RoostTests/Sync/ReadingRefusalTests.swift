import RoostAPI
import Testing

@testable import Roost

/// Reading and watching while the server can't accept them.
@Suite("Sync: reading and watching at a busy server")
struct ReadingRefusalTests {
    private static let channel = Harness.channel
    private static let busy = RoostError(.overloaded, "Later.")

    private func client() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        return client
    }

    private func replies(to token: CallToken, _ client: inout Harness) -> [Result<[UInt8], RoostError>] {
        client.take().compactMap { if case .reply(token, let result) = $0 { result } else { nil } }
    }

    private func pauses(_ timer: Sync.Timer, _ client: inout Harness) -> [Duration] {
        client.take().compactMap { if case .startTimer(timer, let pause) = $0 { pause } else { nil } }
    }

    private let done = UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 3)

    @Test(
        "AM-45 reading that the server can't start now is retried at growing intervals, and its caller is answered once it has started",
        arguments: [.rateLimited, .overloaded, .unavailable, .internalError] as [RoostError.Code])
    func startsAgain(code: RoostError.Code) async throws {
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        _ = client.take()
        var waited: [Duration] = []
        for _ in 0..<3 {
            try await client.refuse("reading.start", with: RoostError(code, "Later."))
            let outputs = client.take()
            for output in outputs { if case .startTimer(.reading(Self.channel), let pause) = output { waited.append(pause) } }
            #expect(!outputs.contains { if case .reply(7, _) = $0 { true } else { false } })
            #expect(try await client.unread() == 0)
            try await client.feed(.timer(.reading(Self.channel)))
        }
        #expect(waited == [.milliseconds(500), .seconds(1), .seconds(2)])
        try await client.answer("reading.start", with: done)
        #expect(replies(to: 7, &client) == [.success([])])
        #expect(client.sync.readingRetries.isEmpty && client.sync.reading[Self.channel] == 3)
        // Nothing is left to retry.
        try await client.feed(.timer(.reading(Self.channel)))
        #expect(client.calls.isEmpty)
    }

    @Test("AM-45 the answer to a resume may be older than that to the start of reading, and doesn't end it")
    func whileCatchingUp() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: done)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        #expect(client.sync.reading[Self.channel] != nil && !client.calls.values.contains("reading.stop"))
        #expect(try await client.unread() == 0)
    }

    @Test("AM-46 reading ends with the server's notice, which is sent even if no position moves, and the server gets a stop")
    func ended() async throws {
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: done)
        #expect(try await client.unread() == 0)
        try await client.receive(ReadingEndedFrame(readingEnded: .init(channel: Self.channel)))
        #expect(client.sync.reading[Self.channel] == nil)
        #expect(client.calls.values.sorted() == ["reading.stop"])
        #expect(try await client.unread() == 2)
        // A repetition does nothing.
        try await client.receive(ReadingEndedFrame(readingEnded: .init(channel: Self.channel)))
        #expect(client.calls.count == 1)
    }

    @Test("AM-45 a server that says when is asked then, and a final refusal ends the reading and is returned to its caller")
    func refusedLater() async throws {
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        try await client.refuse("reading.start", with: RoostError(.rateLimited, "Later.", retryAfterMilliseconds: 9000))
        #expect(pauses(.reading(Self.channel), &client) == [.seconds(9)])
        try await client.feed(.timer(.reading(Self.channel)))
        let refusal = RoostError(.notMember, "No.")
        try await client.refuse("reading.start", with: refusal)
        #expect(replies(to: 7, &client) == [.failure(refusal)])
        #expect(client.sync.reading.isEmpty && client.sync.readingRetries.isEmpty)
        #expect(try await client.unread() == 2)
    }

    @Test("AM-45 repeated internal errors of a server are a refusal")
    func internalErrors() async throws {
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        let error = RoostError(.internalError, "Something.")
        for _ in 1..<client.sync.settings.internalErrorsMax {
            try await client.refuse("reading.start", with: error)
            try await client.feed(.timer(.reading(Self.channel)))
        }
        #expect(replies(to: 7, &client) == [])
        try await client.refuse("reading.start", with: error)
        #expect(replies(to: 7, &client) == [.failure(error)])
        #expect(client.sync.reading.isEmpty)
    }

    @Test(
        "AM-45 a caller that waits for a busy server is answered when the reading or the connection ends, or the call is cancelled")
    func ends() async throws {
        func waiting() async throws -> Harness {
            var client = try await client()
            try await client.feed(.startReading(7, Self.channel))
            try await client.refuse("reading.start", with: Self.busy)
            _ = client.take()
            return client
        }
        var stopped = try await waiting()
        try await stopped.feed(.stopReading(8, Self.channel, id: 1, at: Timestamp(milliseconds: 0)))
        #expect(replies(to: 7, &stopped) == [.success([])])
        #expect(stopped.calls.values.contains("reading.stop") && !stopped.calls.values.contains("reading.start"))

        var disconnected = try await waiting()
        try await disconnected.feed(.transport(disconnected.sync.connection, .closed(code: nil, reason: "")))
        let outputs = disconnected.take()
        #expect(outputs.contains(.reply(7, .success([]))) && outputs.contains(.cancelTimer(.reading(Self.channel))))
        // It starts again with the next connection.
        disconnected.forgetCalls()
        try await disconnected.connect()
        try await disconnected.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(disconnected.calls.values.contains("reading.start"))

        var left = try await waiting()
        let gone = membership(readSeq: 1, readCount: 0, state: .none, channelSeq: 4, userSeq: 2)
        try await left.receive(mine(2, .memberLeft, gone))
        guard case .failure(let error) = try #require(replies(to: 7, &left).first) else {
            throw Harness.Missing(operation: "an error")
        }
        #expect(error.code == .notMember && left.sync.readingRetries.isEmpty)

        var cancelled = try await waiting()
        try await cancelled.feed(.cancel(7))
        _ = cancelled.take()
        try await cancelled.feed(.timer(.reading(Self.channel)))
        try await cancelled.answer("reading.start", with: done)
        #expect(replies(to: 7, &cancelled) == [] && cancelled.sync.reading[Self.channel] == 3)
    }

    @Test("AM-45 the end of reading is retried too: the server would continue to mark arriving messages")
    func stopsAgain() async throws {
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: done)
        try await client.feed(.stopReading(8, Self.channel, id: 1, at: Timestamp(milliseconds: 0)))
        try await client.refuse("reading.stop", with: Self.busy)
        #expect(pauses(.reading(Self.channel), &client) == [.milliseconds(500)])
        try await client.feed(.timer(.reading(Self.channel)))
        try await client.answerDone("reading.stop")
        #expect(client.sync.readingRetries.isEmpty)

        // Starting again before that was answered.
        try await client.feed(.startReading(9, Self.channel))
        try await client.feed(.stopReading(10, Self.channel, id: 2, at: Timestamp(milliseconds: 0)))
        try await client.feed(.startReading(11, Self.channel))
        try await client.answer("reading.start", with: done)
        try await client.refuse("reading.stop", with: Self.busy)
        #expect(pauses(.reading(Self.channel), &client) == [])
        try await client.answer("reading.start", with: done)
        #expect(client.sync.reading[Self.channel] == 3)
    }

    @Test("AM-45 reading that a new connection couldn't restart continues as soon as it can")
    func renewal() async throws {
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: done)
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        try await client.refuse("reading.start", with: Self.busy)
        #expect(pauses(.reading(Self.channel), &client) == [.milliseconds(500)])
        try await client.feed(.timer(.reading(Self.channel)))
        try await client.answer("reading.start", with: done)
        #expect(client.sync.reading[Self.channel] == 3 && client.sync.readingRetries.isEmpty)
    }

    @Test("ST-01 a watch that a new connection couldn't renew now is retried, unless it is no longer wanted")
    func watches() async throws {
        var client = try await client()
        client.sync.watched = [Self.channel]
        func reconnected() async throws {
            try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
            client.forgetCalls()
            try await client.connect()
            try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        }
        try await reconnected()
        for pause in [Duration.milliseconds(500), .seconds(1)] {
            try await client.refuse("channel.watch", with: Self.busy)
            #expect(pauses(.watch(Self.channel), &client) == [pause])
            try await client.feed(.timer(.watch(Self.channel)))
        }
        try await client.answerDone("channel.watch")
        #expect(client.sync.watched == [Self.channel] && client.sync.watches.retries.isEmpty)

        try await reconnected()
        try await client.refuse("channel.watch", with: Self.busy)
        try await client.feed(.call(20, UnwatchChannel(channel: Self.channel)))
        try await client.answerDone("channel.unwatch")
        try await client.feed(.timer(.watch(Self.channel)))
        #expect(client.calls.isEmpty && client.sync.watches.retries.isEmpty)

        client.sync.watched = [Self.channel]
        try await reconnected()
        try await client.refuse("channel.watch", with: Self.busy)
        _ = client.take()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        #expect(client.take().contains(.cancelTimer(.watch(Self.channel))) && client.sync.watches.retries.isEmpty)
    }
}
