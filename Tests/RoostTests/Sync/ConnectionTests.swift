import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: connection")
struct ConnectionTests {
    private func timer(_ timer: Sync.Timer, in outputs: [Sync.Output]) -> Duration? {
        for case .startTimer(timer, let delay) in outputs { return delay }
        return nil
    }

    /// Why a client that isn't connected waits.
    private func reason(_ client: Harness) -> WaitingReason? {
        if case .waiting(_, let reason) = client.sync.status { reason } else { nil }
    }

    @Test("each failed attempt doubles the bound of the wait, up to its limit; the wait is a random part of it")
    func backoff() async throws {
        var client = try await Harness()
        client.sync.random = HighestDraw()
        try await client.feed(.start)
        try await client.feed(.token("token"))
        var waits: [Duration] = []
        for _ in 0..<8 {
            _ = client.take()
            try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
            waits.append(try #require(timer(.reconnect, in: client.take())))
            try await client.feed(.timer(.reconnect))
        }
        let seconds = waits.map { ($0 / .milliseconds(100)).rounded() / 10 }
        #expect(seconds == [0.5, 1, 2, 4, 8, 16, 30, 30])
    }

    @Test("AM-48 a token with another role has the channels fetched again, and once more if the connection ends before they arrive")
    func otherRole() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        // The contents of an ephemeral channel can't be fetched again.
        try await client.store.write([.position("live", Position(cursor: 2, windowStart: 0))])
        for _ in 1...2 {
            client = try await client.restarted()
            try await client.connect(role: .moderator)
            #expect(client.resumes == [["live": 2]])
        }
        var channel = fresh()
        channel.rows.ownCapabilities = ["general": [.channelRead, .historyRead]]
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [channel], hasMore: false))
        #expect(try await client.view()?.ownCapabilities == [.channelRead, .historyRead])
        #expect(Array(client.calls.values) == ["channel.get"])
        #expect(client.sync.status == .online && client.sync.saved.role == .moderator)
        #expect(try await client.store.savedState() == client.sync.saved)
        client = try await client.restarted()
        try await client.connect(role: .moderator)
        #expect(client.resumes == [["general": 3, "live": 2]])
    }

    @Test("a server that shuts down says when to reconnect")
    func closing() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.receive(ClosingFrame(closing: .init(reason: "restart", retryAfterMilliseconds: 3000)))
        try await client.feed(.transport(client.sync.connection, .closed(code: CloseCode.restart.rawValue, reason: "")))
        #expect(timer(.reconnect, in: client.take()) == .seconds(3))
    }

    @Test("a wait that a server asked for no longer counts once it accepts a connection again")
    func closingIsOver() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(ClosingFrame(closing: .init(reason: "restart", retryAfterMilliseconds: 3000)))
        try await client.feed(.stop)
        client.forgetCalls()
        try await client.connect()
        _ = client.take()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        #expect(timer(.reconnect, in: client.take()) == .zero)
    }

    @Test("a wait requested by the server counts before the welcome too, and doesn't outlive a disconnect by the app")
    func closingEarly() async throws {
        let closing = ClosingFrame(closing: .init(reason: "restart", retryAfterMilliseconds: 3000))
        var early = try await Harness()
        try await early.open()
        #expect(early.sync.phase == .authenticating)
        try await early.receive(closing)
        try await early.welcome()
        _ = early.take()
        try await early.feed(.transport(early.sync.connection, .closed(code: 1012, reason: "")))
        #expect(timer(.reconnect, in: early.take()) == .seconds(3))

        var stopped = try await Harness()
        try await stopped.connectWithChannel()
        try await stopped.receive(closing)
        try await stopped.feed(.stop)
        try await stopped.feed(.start)
        _ = stopped.take()
        // There is no network now.
        try await stopped.feed(.transport(stopped.sync.connection, .closed(code: nil, reason: "")))
        #expect(timer(.reconnect, in: stopped.take()) == .zero)
    }

    @Test("an expired token is renewed at once; a refused one is an error, and the attempts continue")
    func tokens() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.feed(.transport(client.sync.connection, .closed(code: CloseCode.tokenExpired.rawValue, reason: "")))
        #expect(client.take().contains(.fetchToken))
        try await client.feed(.token("another"))
        try await client.feed(.transport(client.sync.connection, .opened))
        try await client.feed(.transport(client.sync.connection, .closed(code: CloseCode.unauthenticated.rawValue, reason: "No.")))
        #expect(client.sync.status == .refused(RoostError(.unauthenticated, "No.")))
        _ = client.take()
        try await client.feed(.timer(.reconnect))
        #expect(client.take().contains(.fetchToken))
    }

    @Test("a revoked token is renewed at once like an expired one; one that is refused from the start waits")
    func revokedToken() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.feed(.transport(client.sync.connection, .closed(code: CloseCode.tokenRevoked.rawValue, reason: "")))
        #expect(client.take().contains(.fetchToken))
        try await client.feed(.token("another"))
        try await client.feed(.transport(client.sync.connection, .opened))
        _ = client.take()
        try await client.receive(text: #"{"error":{"code":"token_revoked","message":"Revoked."}}"#)
        let outputs = client.take()
        #expect(timer(.reconnect, in: outputs) != nil && !outputs.contains(.fetchToken))
        #expect(client.sync.status == .refused(RoostError(.tokenRevoked, "Revoked.")))
    }

    @Test("a token that has expired without a connection is replaced at once, without an error to the app")
    func expiredMeanwhile() async throws {
        for word in ["token_expired", "token_revoked"] {
            var client = try await Harness()
            try await client.connectWithChannel()
            try await client.feed(.stop)
            client.forgetCalls()
            try await client.feed(.start)
            try await client.feed(.transport(client.sync.connection, .opened))
            _ = client.take()
            try await client.receive(text: #"{"error":{"code":"\#(word)","message":"Over."}}"#)
            #expect(client.take().contains(.fetchToken) && client.sync.status == .connecting)
            // The next one was never valid.
            try await client.feed(.token("another"))
            try await client.feed(.transport(client.sync.connection, .opened))
            _ = client.take()
            try await client.receive(text: #"{"error":{"code":"\#(word)","message":"Over."}}"#)
            guard case .refused = client.sync.status else {
                Issue.record("\(client.sync.status)")
                continue
            }
            #expect(!client.take().contains(.fetchToken))
        }
    }

    @Test("a token that was kept because no server answered, and expired, is replaced silently; the next one has to be valid")
    func keptTokenExpired() async throws {
        for code in ["token_expired", "token_revoked"] {
            var client = try await Harness()
            try await client.feed(.start)
            try await client.feed(.token("token"))
            try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
            try await client.feed(.timer(.reconnect))
            try await client.feed(.transport(client.sync.connection, .opened))
            _ = client.take()
            let frame = #"{"error":{"code":"\#(code)","message":"Over."}}"#
            try await client.receive(text: frame)
            #expect(client.take().contains(.fetchToken) && client.sync.status == .connecting)
            try await client.feed(.token("another"))
            try await client.feed(.transport(client.sync.connection, .opened))
            _ = client.take()
            try await client.receive(text: frame)
            guard case .refused = client.sync.status else {
                Issue.record("\(client.sync.status)")
                continue
            }
            #expect(!client.take().contains(.fetchToken))
        }
    }

    @Test("I4 if a server doesn't send its time, this device's counts: the keys of operations are of today")
    func noClock() async throws {
        var client = try await Harness()
        let today = Timestamp(milliseconds: 1_800_000_000_000)
        try await client.feed(.start)
        try await client.feed(.token("token"))
        try await client.feed(.deviceTime(today))
        try await client.feed(.transport(client.sync.connection, .opened))
        try await client.receive(text: #"{"welcome":{"user":"ann","epoch":"first","pingIntervalSeconds":30}}"#)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        try await client.enqueue(.hide(HideChannel(channel: Harness.channel)))
        let key = try #require(client.keys["channel.hide"]?.last ?? nil)
        #expect(try IdempotencyKey(key).madeAt == today)
    }

    @Test("a token that the server can't read isn't kept: the next attempt requests another one, and the app is notified")
    func unreadableToken() async throws {
        var client = try await Harness()
        try await client.feed(.start)
        try await client.feed(.token(String(repeating: "x", count: Limits.unauthenticatedSizeBytes)))
        _ = client.take()
        try await client.feed(.transport(client.sync.connection, .opened))
        let sent = client.take().filter { if case .send = $0 { true } else { false } }
        guard case .refused(let tooLong) = client.sync.status else { throw Harness.Missing(operation: "the refusal") }
        #expect(sent.isEmpty && tooLong.code == .unauthenticated && tooLong.message.contains("at most 16384"))
        try await client.feed(.timer(.reconnect))
        #expect(client.take().contains(.fetchToken))

        try await client.feed(.token("unreadable"))
        try await client.feed(.transport(client.sync.connection, .opened))
        try await client.feed(.transport(client.sync.connection, .closed(code: 1009, reason: "too big")))
        #expect(client.sync.status == .refused(RoostError(.unauthenticated, "The server couldn't read the token: 1009 too big")))
        try await client.feed(.timer(.reconnect))
        #expect(client.take().contains(.fetchToken))

        try await client.feed(.token("another"))
        try await client.feed(.transport(client.sync.connection, .opened))
        try await client.receive(text: #"{"error":{"code":"invalid_argument","message":"No."}}"#)
        try await client.feed(.timer(.reconnect))
        #expect(client.take().contains(.fetchToken))
    }

    @Test(
        "a valid token is kept when a server restarts, is busy or away before its welcome",
        arguments: [1001, 1006, 1011, 1012, 4003, 4029, nil])
    func keptToken(code: UInt16?) async throws {
        var client = try await Harness()
        try await client.feed(.start)
        try await client.feed(.token("token"))
        try await client.feed(.transport(client.sync.connection, .opened))
        if code == 4029 { try await client.receive(text: #"{"error":{"code":"overloaded","message":"Later."}}"#) }
        try await client.feed(.transport(client.sync.connection, .closed(code: code, reason: "")))
        _ = client.take()
        try await client.feed(.timer(.reconnect))
        #expect(client.sync.token == "token" && client.sync.phase == .opening)
    }

    @Test("an error that answers no call ends a connection before its welcome, and none after it")
    func errorFrame() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        let frame = #"{"error":{"code":"limit_exceeded","message":"Too many values."}}"#
        try await client.receive(text: frame)
        #expect(client.sync.status == .online && !client.take().contains(.close))
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.feed(.timer(.reconnect))
        try await client.feed(.transport(client.sync.connection, .opened))
        try await client.receive(text: frame)
        #expect(client.sync.status == .refused(RoostError(.limitExceeded, "Too many values.")))
    }

    @Test("a deactivated user's client stops, whichever notice arrives first, until the app connects again")
    func deactivated() async throws {
        for isFrameFirst in [true, false] {
            var client = try await Harness()
            try await client.connectWithChannel()
            _ = client.take()
            if isFrameFirst { try await client.receive(text: #"{"error":{"code":"user_deactivated","message":"No."}}"#) }
            try await client.feed(
                .transport(client.sync.connection, .closed(code: CloseCode.userDeactivated.rawValue, reason: "user_deactivated")))
            let outputs = client.take()
            #expect(timer(.reconnect, in: outputs) == nil && !outputs.contains(.fetchToken))
            guard case .refused(let error) = client.sync.status, error.code == .userDeactivated else {
                Issue.record("\(client.sync.status)")
                continue
            }
            #expect(client.sync.phase == .idle)
            try await client.feed(.timer(.reconnect))
            #expect(!client.take().contains(.fetchToken))
            try await client.feed(.start)
            #expect(client.take().contains(.fetchToken))
        }
    }

    @Test("a token provider that says that the user's session has ended is asked again only once the app connects again")
    func sessionEnded() async throws {
        let error = RoostError(.unauthenticated, "The session has expired.")
        for wasConnected in [true, false] {
            var client = try await Harness()
            if wasConnected {
                try await client.connectWithChannel()
                try await client.feed(
                    .transport(client.sync.connection, .closed(code: CloseCode.tokenExpired.rawValue, reason: "")))
            } else {
                try await client.feed(.start)
            }
            #expect(client.take().contains(.fetchToken))
            try await client.feed(.tokenDenied(error))
            #expect(client.sync.status == .failed(error) && client.sync.phase == .idle)
            try await client.feed(.nudge)
            try await client.feed(.timer(.reconnect))
            let outputs = client.take()
            #expect(timer(.reconnect, in: outputs) == nil && !outputs.contains(.fetchToken))
            #expect(outputs.contains(.cancelTimer(.token)) && outputs.contains(.status(.failed(error))))

            try await client.feed(.start)
            #expect(client.take().contains(.fetchToken) && client.sync.status == .connecting)
            // The app has disconnected by the time of the answer.
            try await client.feed(.stop)
            try await client.feed(.tokenDenied(error))
            #expect(client.sync.status == .offline)
        }
    }

    @Test("a token provider that hangs is abandoned and asked again later")
    func hangingProvider() async throws {
        var client = try await Harness()
        try await client.feed(.start)
        try await client.feed(.timer(.token))
        #expect(client.take().contains(.cancelToken))
        try await client.feed(.timer(.reconnect))
        #expect(client.take().contains(.fetchToken))
    }

    @Test("a token of another user is refused before anything is stored")
    func wrongUser() async throws {
        var client = try await Harness()
        try await client.feed(.start)
        try await client.feed(.token("token"))
        try await client.feed(.transport(client.sync.connection, .opened))
        try await client.receive(text: #"{"welcome":{"user":"bob","epoch":"first","pingIntervalSeconds":30}}"#)
        #expect(client.sync.status == .refused(RoostError(.unauthenticated, "The token is for bob, not for ann.")))
        #expect(try await client.store.savedState() == SavedState())
    }

    @Test("a server that opens no socket, or sends no readable welcome, is abandoned after 20 seconds and retried")
    func noWelcome() async throws {
        let attempts: [(isOpened: Bool, frame: String?)] = [
            (false, nil), (true, nil), (true, "no JSON"), (true, #"{"welcome":7}"#), (true, #"{"welcome":{"user":"ann"}}"#),
        ]
        for (isOpened, frame) in attempts {
            var client = try await Harness()
            try await client.feed(.start)
            try await client.feed(.token("token"))
            #expect(timer(.handshake, in: client.take()) == .seconds(20))
            if isOpened { try await client.feed(.transport(client.sync.connection, .opened)) }
            if let frame { try await client.receive(text: frame) }
            #expect(client.sync.phase == (isOpened ? .authenticating : .opening))
            try await client.feed(.timer(.handshake))
            #expect(reason(client) == WaitingReason(.server, "no welcome within 20.0 seconds"))
            try await client.feed(.timer(.reconnect))
            #expect(client.sync.phase == .opening)
        }
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.timer(.handshake))
        #expect(client.sync.phase == .online)
    }

    @Test("an unreadable answer to a resume ends the connection and changes nothing; the next one continues from the same state")
    func unreadableResume() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let saved = try await client.store.savedState()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        try await client.answer("stream.resume", with: 7)
        #expect(reason(client)?.cause == .server)
        #expect(reason(client)?.message.contains("the answer to a resume couldn't be read") == true)
        #expect(try await client.store.savedState() == saved)
        #expect(client.sync.saved == saved)
        client.forgetCalls()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.sync.phase == .online)
    }

    @Test("silence for two intervals ends the connection; a ping asks first")
    func liveness() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for _ in 0..<3 { try await client.feed(.timer(.liveness)) }
        #expect(client.take().contains(.ping))
        try await client.feed(.transport(client.sync.connection, .heard))
        for _ in 0..<4 { try await client.feed(.timer(.liveness)) }
        #expect(client.sync.phase == .online)
        try await client.feed(.timer(.liveness))
        #expect(client.sync.phase == .waiting)
    }

    @Test("a nudge ends a wait, but not one that the server asked for, nor the app's disconnect")
    func nudged() async throws {
        var client = try await Harness()
        try await client.feed(.nudge)
        #expect(client.sync.phase == .idle && client.take() == [])
        try await client.connectWithChannel()
        for retryAfter in [nil, Duration.seconds(9)] {
            client.sync.retryAfter = retryAfter
            try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
            #expect(client.sync.phase == .waiting)
            _ = client.take()
            try await client.feed(.nudge)
            #expect(client.sync.phase == (retryAfter == nil ? .opening : .waiting))
            guard retryAfter == nil else { break }
            #expect(client.take().contains(.cancelTimer(.reconnect)))
            // While it is connecting, a nudge starts nothing.
            try await client.feed(.nudge)
            #expect(client.take() == [])
            try await client.connect()
        }
        try await client.feed(.timer(.reconnect))
        #expect(client.sync.phase == .opening)
        try await client.feed(.stop)
        try await client.feed(.nudge)
        #expect(client.sync.phase == .idle)
    }

    @Test("a nudge pings a connected server, once, and silence ends the connection")
    func probed() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.feed(.nudge)
        #expect(client.take() == [.ping, .startTimer(.liveness, .seconds(5))])
        try await client.feed(.nudge)
        #expect(client.take() == [])
        try await client.feed(.transport(client.sync.connection, .heard))
        try await client.feed(.timer(.liveness))
        #expect(client.sync.phase == .online)
        // The ordinary ticks continue.
        #expect(client.take() == [.startTimer(.liveness, .seconds(15))])
        try await client.feed(.nudge)
        try await client.feed(.timer(.liveness))
        #expect(client.sync.phase == .waiting)
        guard case .waiting(_, let reason) = client.sync.status else {
            Issue.record("\(client.sync.status)")
            return
        }
        #expect(reason.message == "nothing received for 5.0 seconds after a ping")
    }

    @Test("a nudge sends no ping whose answer would follow a long page of missed events")
    func nudgedWhileCatchingUp() async throws {
        var client = try await Harness()
        try await client.connect()
        _ = client.take()
        try await client.feed(.nudge)
        #expect(client.sync.phase == .catchingUp && client.take() == [])
        try await client.feed(.timer(.liveness))
        #expect(client.sync.phase == .catchingUp)
    }

    @Test("calls fail while offline, when the connection is lost, and when no answer arrives")
    func calls() async throws {
        var client = try await Harness()
        try await client.feed(.call(1, GetMe()))
        try await client.connectWithChannel()
        try await client.feed(.call(2, GetMe()))
        try await client.feed(.timer(.call(client.sync.lastCall)))
        try await client.feed(.call(3, GetMe()))
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        var codes: [CallToken: RoostError.Code] = [:]
        for case .reply(let token, .failure(let error)) in client.take() { codes[token] = error.code }
        #expect(codes == [1: .notConnected, 2: .unavailable, 3: .notConnected])
    }

    @Test("a store that can't be written ends the connection, and the next one starts from the stored state")
    func storeFailure() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let saved = SavedState(epoch: "first", userCursor: 1, channels: [Harness.channel: Position(cursor: 2, windowStart: 2)])
        try await client.feed(.storeFailed(saved, nil, "disk full"))
        #expect(client.sync.phase == .waiting)
        #expect(client.sync.saved == saved)
    }

    @Test("after a store failed, operations that it should have removed are sent again, and overlays are written again")
    func storeFailureAndOutbox() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(.hide(HideChannel(channel: Harness.channel)))
        let saved = try await client.store.savedState()
        // The answer's row couldn't be stored, so the operation stays in the file.
        let kept = try await client.outbox.saved()
        try await client.answer("channel.hide", with: Done())
        #expect(client.sync.queues.isEmpty)
        try await client.outbox.apply(kept.items.map { .put($0) })
        try await client.feed(.storeFailed(saved, try await client.outbox.saved(), "disk full"))
        #expect(try await client.view()?.hiddenState == .unhidden)
        try await client.feed(.timer(.reconnect))
        try await client.connect()
        #expect(try await client.view()?.hiddenState == .hiddenAllowAutoUnhide)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.keys["channel.hide"].map { Set($0).count } == 1)
        try await client.answerDone("channel.hide")
        #expect(try await client.outbox.count() == 0)
        #expect(try await client.view()?.hiddenState == .unhidden)
    }
}

/// Always draws the highest number.
private struct HighestDraw: RandomNumberGenerator, Sendable {
    mutating func next() -> UInt64 { .max }
}
