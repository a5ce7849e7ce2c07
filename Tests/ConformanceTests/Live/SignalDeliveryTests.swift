import RoostAPI
import RoostTestSupport
import Testing

/// Signals over real sockets.
@Suite struct SignalDeliveryTests {
    private func typing(_ users: UserID...) -> Signal {
        Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: users, hasMore: false))
    }

    @Test("SB-02 R26 §4 typing is sent to the other members, watching or not, and to watchers, but not to the typer's own devices")
    func typing() async throws {
        let server = try await TestServer()
        let (ann, bob, phone) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        let zoe = try await server.socket("zoe")
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        try await bob.call(StartTyping(channel: "general"))
        #expect(try await ann.nextSignal() == typing("bob"))
        for socket in [bob, phone] { #expect(try await socket.nextSignal() == typing()) }
        // Over HTTP too.
        let token = try await server.token("ann")
        let answer = try await server.request("POST", "/v1/channels/general/typing", token: token, body: "{}")
        #expect(answer.status == 200)
        #expect(try await bob.nextSignal() == typing("ann"))
        #expect(try await ann.nextSignal() == typing("bob"))
        try await bob.call(StopTyping(channel: "general"))
        #expect(try await phone.nextSignal() == typing("ann"))
        while try await ann.nextSignal().typing?.users != [] {}
        // Leaving ends it. Otherwise it would expire ten seconds after it began. A busy machine may take as long, but not each time.
        var quickest = Duration.seconds(60)
        for _ in 0..<5 where quickest > .seconds(5) {
            try await bob.call(JoinChannel(channel: "general"))
            try await bob.call(StartTyping(channel: "general"))
            while try await ann.nextSignal().typing?.users != ["bob"] {}
            let start = ContinuousClock.now
            try await bob.call(LeaveChannel(channel: "general"))
            while try await ann.nextSignal().typing?.users != [] {}
            quickest = min(quickest, ContinuousClock.now - start)
        }
        #expect(quickest <= .seconds(5))
        // Non-members aren't notified.
        _ = try await zoe.call(GetMe())
        #expect(await zoe.signals == [])
        try await server.stop()
    }

    @Test(
        "SB-02 X-28 a user who has stopped typing isn't shown, however fast it was; a user may report typing ten times a second"
    )
    func order() async throws {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        var others: [RawSocket] = []
        for number in 0..<8 {
            others.append(try await server.socket(UserID("u\(number)")))
            try await others[number].call(JoinChannel(channel: "general"))
        }
        // Each starts and stops at once, without waiting for an answer.
        for socket in others {
            var calls: [Int64] = []
            for _ in 0..<5 {
                calls.append(try await socket.post(StartTyping(channel: "general")))
                calls.append(try await socket.post(StopTyping(channel: "general")))
            }
            for call in calls { _ = try await socket.reply(to: call, as: Done.self) }
        }
        try await bob.call(StartTyping(channel: "general"))
        var typing: [UserID] = []
        while !typing.contains("bob") { typing = try await ann.nextSignal().typing?.users ?? [] }
        #expect(typing == ["bob"])
        for socket in others { await socket.close() }
        let starts = Array(repeating: StartTyping(channel: "general"), count: 30)
        #expect(Set(try await bob.refusals(inBurstsOf: starts).compactMap { $0?.code }) == [.rateLimited])
        // Stopping has the same limit, whether the user typed or not.
        let stops = Array(repeating: StopTyping(channel: "general"), count: 30)
        #expect(Set(try await ann.refusals(inBurstsOf: stops).compactMap { $0?.code }) == [.rateLimited])
        // A refusal of one kind doesn't affect others.
        try await bob.call(SendSignal(channel: "general", type: "wave"))
        try await server.stop()
    }

    @Test(
        "an app's own signals don't flood a channel with more than 100 watchers: the newest of each sender and type is sent twice a second"
    )
    func crowd() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "stage", type: .livestream))
        var crowd: [RawSocket] = []
        for number in 0..<101 {
            crowd.append(try await server.socket(UserID("u\(number)")))
            try await crowd[number].call(WatchChannel(channel: "stage", limit: 0))
        }
        let signals = (Int64(1)...10).map { SendSignal(channel: "stage", type: "cursor", metadata: ["n": .integer($0)]) }
        #expect(try await ann.refusals(of: signals).allSatisfy { $0 == nil })
        var seen: [JSONValue?] = []
        while seen.last != .some(["n": 10]) {
            let signal = try await crowd[100].nextSignal()
            if let custom = signal.custom { seen.append(custom.metadata) }
        }
        #expect(seen.count <= 4)
        // A channel with fewer gets every one.
        for socket in crowd.dropFirst(5) { try await socket.call(UnwatchChannel(channel: "stage")) }
        let bob = try await server.socket("bob")
        for number in 11...15 {
            try await bob.call(SendSignal(channel: "stage", type: "cursor", metadata: ["n": .integer(Int64(number))]))
        }
        seen = []
        while seen.last != .some(["n": 15]) {
            let signal = try await crowd[0].nextSignal()
            if let custom = signal.custom { seen.append(custom.metadata) }
        }
        #expect(seen.suffix(5) == (11...15).map { ["n": .integer(Int64($0))] })
        for socket in crowd + [ann, bob] { await socket.close() }
        try await server.stop()
    }

    @Test("ST-10 ST-13 ST-16 watchers are notified of who starts and who stops, by a call or by disconnecting; others aren't")
    func watching() async throws {
        let server = try await TestServer()
        let (ann, bob, cid) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("cid"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob", "cid"]))
        try await ann.call(WatchChannel(channel: "general"))
        /// Follows the watchers from signal to signal until they match.
        func follow(_ socket: RawSocket, from known: Set<UserID>, to wanted: Set<UserID>) async throws {
            var watchers = known
            while watchers != wanted {
                let signal = try await socket.nextSignal()
                // Presence is sent separately.
                guard let change = signal.watching else { continue }
                watchers.formUnion(change.started)
                watchers.subtract(change.stopped)
                #expect(change.isWhole && change.watcherCount == watchers.count)
            }
        }
        try await follow(ann, from: [], to: ["ann"])
        #expect(try await bob.call(WatchChannel(channel: "general")).watcherCount == 2)
        try await follow(ann, from: ["ann"], to: ["ann", "bob"])
        // A second device of bob's isn't a second watcher.
        let tablet = try await server.socket("bob")
        try await tablet.call(WatchChannel(channel: "general"))
        try await bob.call(UnwatchChannel(channel: "general"))
        let page = try await ann.call(ListWatchers(channel: "general"))
        #expect(page.watchers.map(\.userId) == ["ann", "bob"] && page.watcherCount == 2)
        await tablet.close()
        try await follow(ann, from: ["ann", "bob"], to: ["ann"])
        try await bob.call(WatchChannel(channel: "general"))
        try await bob.call(LeaveChannel(channel: "general"))
        // Members who don't watch weren't notified of any of it.
        _ = try await cid.call(GetMe())
        #expect(await cid.signals.allSatisfy { $0.watching == nil })
        try await cid.call(WatchChannel(channel: "general"))
        try await follow(ann, from: ["ann"], to: ["ann", "cid"])
        try await server.stop()
    }

    @Test("custom signals reach watchers and the sender's other devices in order, 10 a second per user")
    func custom() async throws {
        let server = try await TestServer()
        let (ann, bob, phone) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        for socket in [ann, phone] { try await socket.call(WatchChannel(channel: "general")) }
        let numbers = Array(Int64(1)...800)
        let signals = numbers.map { SendSignal(channel: "general", type: "move", metadata: ["number": .integer($0)]) }
        let bursts = stride(from: 0, to: signals.count, by: 40).map { Array(signals[$0..<$0 + 40]) }
        let refusals = try await bob.refusals(inBursts: bursts)
        for error in refusals.compactMap({ $0 }) {
            #expect(error.code == .rateLimited && (1...1000).contains(error.retryAfterMilliseconds ?? 0) && error.limit == 10)
        }
        let accepted = zip(numbers, refusals).filter { $0.1 == nil }.map(\.0)
        #expect(accepted.starts(with: 1...10))
        for socket in [ann, phone] {
            var heard: [JSONValue] = []
            while heard.count < accepted.count {
                let signal = try await socket.nextSignal()
                guard let custom = signal.custom else { continue }
                #expect(signal.sender == "bob" && custom.type == "move")
                if case .object(let metadata) = custom.metadata, let number = metadata["number"] { heard.append(number) }
            }
            #expect(heard == accepted.map(JSONValue.integer))
        }
        _ = try await bob.call(GetMe())
        #expect(await bob.signals.allSatisfy { $0.custom == nil })
        try await server.stop()
    }

    @Test("I9 a user who may no longer read a channel gets none of its signals")
    func rights() async throws {
        let server = try await TestServer()
        let (ann, eve) = (try await server.socket("ann"), try await server.socket("eve"))
        try await ann.call(CreateChannel(channel: "show", type: .livestream))
        try await eve.call(WatchChannel(channel: "show"))
        // The watchers, including her, are notified a moment later: here while she may still read the channel.
        while try await eve.nextSignal().watching?.started != ["eve"] {}
        try await ann.call(SendSignal(channel: "show", type: "before"))
        while try await eve.nextSignal().custom?.type != "before" {}
        try await ann.call(UpdateChannel(channel: "show", isPublic: false))
        try await ann.call(SendSignal(channel: "show", type: "after"))
        try await ann.call(StartTyping(channel: "show"))
        try await ann.call(WatchChannel(channel: "show"))
        while try await ann.nextSignal().watching?.started != ["ann"] {}
        _ = try await eve.call(GetMe())
        #expect(await eve.signals == [])
        try await server.stop()
    }
}
