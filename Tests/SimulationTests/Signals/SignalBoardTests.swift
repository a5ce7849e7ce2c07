import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

@Suite struct SignalBoardTests {
    private let nobody = KnownPresence()

    /// The users shown as typing at each of some times.
    private func sent(_ board: inout SignalBoard, at times: some Sequence<Int64>) -> [Int64: [UserID]] {
        var sent: [Int64: [UserID]] = [:]
        for time in times { for signal in board.takeDue(at: time, presence: nobody) { sent[time] = signal.typing?.users } }
        return sent
    }

    private func expect(
        _ board: inout SignalBoard, at times: some Sequence<Int64>, _ users: [Int64: [UserID]],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = sent(&board, at: times)
        #expect(found == users, sourceLocation: sourceLocation)
    }

    @Test("SB-02 I14 typing is sent at once, again every 5 seconds, and ends 10 seconds after the last call")
    func typing() {
        var board = SignalBoard()
        board.types("ann", in: "general", at: 0)
        expect(&board, at: stride(from: 0, through: 20_000, by: 100), [0: ["ann"], 5000: ["ann"], 10_000: []])
        #expect(board.isEmpty)
        // A user who calls again keeps typing.
        board.types("ann", in: "general", at: 30_000)
        _ = sent(&board, at: [30_000])
        board.types("ann", in: "general", at: 39_000)
        let later = sent(&board, at: stride(from: 30_100, through: 60_000, by: 100))
        #expect(later == [35_000: ["ann"], 40_000: ["ann"], 45_000: ["ann"], 49_000: []])
    }

    @Test("R26 X-32 however many type, a channel is notified at most twice a second, of those who began first")
    func crowd() {
        var board = SignalBoard()
        var count = 0
        for time in stride(from: Int64(0), to: 10_000, by: 10) {
            board.types(UserID("u\(time / 10)"), in: "general", at: time)
            if time % 100 == 0 { count += board.takeDue(at: time, presence: nobody).count }
        }
        #expect((2...21).contains(count))
        let signals = board.takeDue(at: 10_000, presence: nobody)
        #expect(signals.map(\.typing) == [TypingUsers(users: (1...11).map { "u\($0)" }, hasMore: true)])
        // A flood of names is bounded. Users whose time is over, and those who stop, make room for the next ones.
        for number in 0..<5000 { board.types(UserID("v\(number)"), in: "general", at: 10_000) }
        board.stopsTyping("u55", in: "general")
        expect(&board, at: [10_500], [10_500: (51...62).filter { $0 != 55 }.map { "u\($0)" }])
        expect(&board, at: [30_000], [30_000: []])
        _ = sent(&board, at: [31_000])
        #expect(board.isEmpty)
    }

    @Test("ST-13 SB-63 R26 changes that couldn't be sent are sent again, with later ones, and none of them twice")
    func toldAgain() {
        var board = SignalBoard()
        var presence = KnownPresence()
        presence.watching = ["ann"]
        presence.online = ["bob"]
        let position = ReadPosition(userId: "ann", readSeq: 3, lastReadAt: Timestamp(milliseconds: 1))
        let name = UserSummary(userId: "ann", displayName: "Ann", version: 2)
        for user in ["ann", "cid"] as [UserID] { board.watchingChanged(of: user, in: "general") }
        board.onlineChanged(of: "bob", in: "general")
        board.onlineChanged(of: nil, in: "general")
        board.reads(position, in: "general")
        board.shows(name, in: "general")
        let unsent = board.takeDue(at: 0, presence: presence)
        #expect(unsent.count == 4)
        board.requeue(unsent)
        // One of them has stopped watching since.
        presence.watching = []
        let sent = board.takeDue(at: 10_000, presence: presence)
        #expect(sent.compactMap(\.watching).first?.stopped == ["ann", "cid"])
        #expect(sent.compactMap(\.presence).first?.online == ["bob"] && sent.compactMap(\.presence).first?.isWhole == false)
        #expect(sent.compactMap(\.read).map(\.readers) == [[position]] && sent.compactMap(\.users).map(\.users) == [[name]])
        #expect(board.takeDue(at: 20_000, presence: presence).isEmpty)
        // An incomplete signal stays incomplete.
        board.requeue([Signal(kind: .readUpdated, channel: "general", read: ReadUpdate(readers: [position], isWhole: false))])
        board.requeue([Signal(kind: .usersChanged, channel: "general", users: UsersChange(users: [name], isWhole: false))])
        let rest = board.takeDue(at: 30_000, presence: presence)
        #expect(rest.compactMap(\.read).map(\.isWhole) == [false] && rest.compactMap(\.users).map(\.isWhole) == [false])
    }

    @Test("SB-02 a start and a stop between two looks send nothing, and a stop is sent after half a second")
    func stops() {
        var board = SignalBoard()
        board.types("ann", in: "general", at: 0)
        board.stopsTyping("ann", in: "general")
        board.stopsTyping("bob", in: "elsewhere")
        expect(&board, at: [100], [:])
        #expect(board.isEmpty)
        board.types("ann", in: "general", at: 200)
        expect(&board, at: [200], [200: ["ann"]])
        board.stopsTyping("ann", in: "general")
        expect(&board, at: stride(from: 300, through: 2000, by: 100), [700: []])
        #expect(board.isEmpty)
    }

    @Test("SB-02 R26 X-33 a user who sends a message stops typing, which the message implies: nothing is sent, then or later")
    func sends() {
        var board = SignalBoard()
        board.types("ann", in: "general", at: 0)
        board.types("bob", in: "general", at: 0)
        expect(&board, at: [100], [100: ["ann", "bob"]])
        for (user, channel): (UserID, ChannelID) in [("ann", "general"), ("ann", "general"), ("bob", "other")] {
            board.hasSent(user, in: channel, at: 700)
        }
        #expect(!board.isTyping("ann", in: "general") && board.isTyping("bob", in: "general"))
        // Bob continues.
        expect(&board, at: stride(from: 800, through: 5600, by: 100), [5100: ["bob"]])
        board.hasSent("bob", in: "general", at: 5700)
        expect(&board, at: stride(from: 5800, through: 20_000, by: 100), [:])
        #expect(board.isEmpty)
    }

    @Test("SB-02 R26 a message that may have overtaken a signal of its sender's typing is followed by another signal")
    func overtakes() {
        var board = SignalBoard()
        board.types("ann", in: "general", at: 0)
        expect(&board, at: [100], [100: ["ann"]])
        board.hasSent("ann", in: "general", at: 110)
        expect(&board, at: stride(from: 200, through: 2000, by: 100), [600: []])
        #expect(board.isEmpty)
        // A user who types on at once is sent too: the message has ended it.
        board.types("ann", in: "general", at: 3000)
        expect(&board, at: [3000], [3000: ["ann"]])
        board.hasSent("ann", in: "general", at: 3100)
        board.types("ann", in: "general", at: 3200)
        expect(&board, at: stride(from: 3200, through: 3600, by: 100), [3500: ["ann"]])
        // A signal that doesn't name the sender may be sent at any time.
        board.types("bob", in: "general", at: 3600)
        board.hasSent("bob", in: "general", at: 3700)
        expect(&board, at: stride(from: 3700, through: 8400, by: 100), [:])
    }

    private func watching(_ board: inout SignalBoard, at time: Int64, _ users: [UserID]) -> WatcherChange? {
        let signals = board.takeDue(at: time, presence: KnownPresence(watching: users))
        #expect(signals.count <= 1 && signals.allSatisfy { $0.kind == .watchingChanged && $0.channel == "general" })
        return signals.first?.watching
    }

    private func expect(
        _ board: inout SignalBoard, at time: Int64, _ users: [UserID], _ change: WatcherChange?,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = watching(&board, at: time, users)
        #expect(found == change, sourceLocation: sourceLocation)
    }

    @Test("ST-13 X-32 watchers are notified of who started and who stopped, with the count, also of those who did both")
    func watchers() {
        var board = SignalBoard()
        board.watchingChanged(of: "ann", in: "general")
        expect(
            &board, at: 0, ["ann"],
            WatcherChange(watcherCount: 1, started: ["ann"], stopped: [], isWhole: true))
        // Within half a second nothing is sent; then all of it together.
        board.watchingChanged(of: "bob", in: "general")
        board.watchingChanged(of: "cid", in: "general")
        board.watchingChanged(of: "ann", in: "general")
        expect(&board, at: 400, ["bob"], nil)
        expect(
            &board, at: 500, ["bob"],
            WatcherChange(watcherCount: 1, started: ["bob"], stopped: ["ann", "cid"], isWhole: true))
        expect(&board, at: 1000, ["bob"], nil)
        #expect(board.isEmpty)
    }

    @Test("X-32 of more than 100 watchers a change is sent every 5 seconds, with 20 names at most")
    func manyWatchers() {
        var board = SignalBoard()
        let crowd = (0..<101).map { UserID("u\($0)") }
        for user in crowd { board.watchingChanged(of: user, in: "general") }
        let change = watching(&board, at: 0, crowd)
        #expect(change?.watcherCount == 101 && change?.started.count == Limits.watcherNames && change?.isWhole == false)
        board.watchingChanged(of: "u0", in: "general")
        expect(&board, at: 4900, Array(crowd.dropFirst()), nil)
        expect(
            &board, at: 5000, Array(crowd.dropFirst()),
            WatcherChange(watcherCount: 100, started: [], stopped: ["u0"], isWhole: true))
    }

    @Test("SB-02 R26 marks are sent twice a second at most, the furthest of each member, of 50 members at once")
    func reading() {
        var board = SignalBoard()
        func position(_ user: UserID, _ seq: Seq) -> ReadPosition { ReadPosition(userId: user, readSeq: seq) }
        func sent(at time: Int64) -> ReadUpdate? { board.takeDue(at: time, presence: nobody).first?.read }
        board.reads(position("ann", 5), in: "general")
        board.reads(position("bob", 3), in: "general")
        // A node may receive them in another order.
        board.reads(position("ann", 4), in: "general")
        var update = sent(at: 0)
        #expect(update == ReadUpdate(readers: [position("ann", 5), position("bob", 3)], isWhole: true))
        board.reads(position("ann", 6), in: "general")
        update = sent(at: 400)
        #expect(update == nil)
        update = sent(at: 500)
        #expect(update == ReadUpdate(readers: [position("ann", 6)], isWhole: true))
        for number in 1...1000 { board.reads(position(UserID("u\(number)"), 7), in: "general") }
        // The others follow with the next ones.
        for turn in 0..<20 {
            board.reads(position("u1000", Seq(8 + turn)), in: "general")
            update = sent(at: 1000 + Int64(turn) * 500)
            let last = turn == 19 ? 27 : 7
            let expected = (turn * 50 + 1...turn * 50 + 50).map { position("u\($0)", $0 == 1000 ? Seq(last) : 7) }
            #expect(update == ReadUpdate(readers: expected, isWhole: true))
        }
        update = sent(at: 11_000)
        #expect(update == nil && board.isEmpty)
        // Beyond a thousand, clients have to ask.
        for number in 1...1001 { board.reads(position(UserID("u\(number)"), 9), in: "general") }
        #expect(sent(at: 12_000)?.isWhole == false && sent(at: 12_500)?.isWhole == true)
    }

    @Test(
        "an app's own signals in a crowd are sent twice a second, ten at a time, the newest of each sender and type; of very many, some are dropped"
    )
    func customs() {
        func signal(_ sender: UserID, _ type: String, _ number: Double) -> Signal {
            Signal(
                kind: .custom, channel: "general", sender: sender,
                custom: CustomSignal(type: type, metadata: ["n": .number(number)]))
        }
        var board = SignalBoard()
        for number in 0..<5 { board.sends(signal("ann", "wave", Double(number))) }
        board.sends(signal("ann", "turn", 1))
        board.sends(signal("bob", "wave", 1))
        let first = board.takeDue(at: 0, presence: KnownPresence())
        #expect(first == [signal("ann", "wave", 4), signal("ann", "turn", 1), signal("bob", "wave", 1)])
        board.sends(signal("ann", "wave", 5))
        #expect(board.takeDue(at: 499, presence: KnownPresence()) == [])
        #expect(board.takeDue(at: 500, presence: KnownPresence()) == [signal("ann", "wave", 5)])
        for number in 0..<1000 { board.sends(signal(UserID("u\(number)"), "wave", 0)) }
        let counts = (2...5).map { board.takeDue(at: Int64($0) * 500, presence: KnownPresence()).count }
        #expect(counts == [10, 10, 0, 0] && board.isEmpty)
    }

    @Test("a user may send 10 signals a second, whoever else sends, and no state of them is kept later")
    func rates() {
        var rates = UserRates()
        let admitted = (0..<25).map { _ in rates.admit("ann", "signal.send", at: .signals, now: 5000) }
        #expect(admitted.count { $0 } == Limits.signalsPerSecond && admitted.prefix(10).allSatisfy { $0 })
        let later = [
            rates.admit("bob", "signal.send", at: .signals, now: 5999),
            rates.admit("ann", "signal.send", at: .signals, now: 5999),
            rates.admit("ann", "signal.send", at: .signals, now: 6000),
        ]
        #expect(later == [true, false, true])
        // Seconds are fixed, as docs/protocol.md says: around the boundary of two, twice as many are accepted at once.
        let times: [Int64] = Array(repeating: 8999, count: 11) + Array(repeating: 9000, count: 11)
        let atBoundary = times.map { rates.admit("ann", "signal.send", at: .signals, now: $0) }
        #expect(atBoundary.count { $0 } == 2 * Limits.signalsPerSecond)
        let signOuts = (0..<25).map { rates.admit("ann", "device.signOut", at: .signOuts, now: 60_000 + $0 * 1000) }
        #expect(signOuts.count { $0 } == Limits.signOutsPerMinute)
        let nextMinute = rates.admit("ann", "device.signOut", at: .signOuts, now: 120_000)
        #expect(nextMinute)
    }

    @Test("ST-12 pages in the order of arrival are those of a list, whatever was added and removed", arguments: 0..<20)
    func arrivals(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var order = ArrivalOrder<Int, Int>()
        var list: [Int] = []
        for _ in 0..<2000 {
            let element = random.number(0...100)
            if random.once(in: 2) {
                order[element] = element
                if !list.contains(element) { list.append(element) }
            } else {
                order[element] = nil
                list.removeAll { $0 == element }
            }
            let (offset, limit) = (random.number(0...60), random.number(1...20))
            #expect(order.elements(offset: offset, limit: limit) == Array(list.dropFirst(offset).prefix(limit)))
            #expect(order.count == list.count && order.isEmpty == list.isEmpty)
        }
        order.removeAll { $0 % 2 == 0 }
        #expect(order.elements() == list.filter { $0 % 2 == 1 })
    }

    @Test(
        "SB-63 D-38 users who come online or go offline are sent like watchers: at most twice a second, by name while they are few")
    func presence() {
        var board = SignalBoard()
        for user: UserID in ["ann", "bob"] { board.onlineChanged(of: user, in: "general") }
        let online = KnownPresence(online: ["ann", "cid"], watching: ["ann"])
        let first = board.takeDue(at: 0, presence: online)
        #expect(first.map(\.presence) == [PresenceChange(onlineCount: 2, online: ["ann"], offline: ["bob"], isWhole: true)])
        #expect(first.map(\.kind) == [.presenceChanged])
        board.onlineChanged(of: "cid", in: "general")
        #expect(board.takeDue(at: 400, presence: online) == [])
        board.onlineChanged(of: nil, in: "general")
        #expect(
            board.takeDue(at: 500, presence: online).map(\.presence)
                == [PresenceChange(onlineCount: 2, online: ["cid"], offline: [], isWhole: false)])
        // Of very many the first are named, and with many watchers it is sent less often.
        for number in 0..<100 { board.onlineChanged(of: UserID("u\(number)"), in: "general") }
        let crowd = KnownPresence(online: (0..<60).map { "u\($0)" }, watching: (0..<101).map { "w\($0)" })
        let change = board.takeDue(at: 1000, presence: crowd).first?.presence
        #expect(change?.online.count == 20 && change?.offline.count == 20 && change?.isWhole == false && change?.onlineCount == 60)
        board.onlineChanged(of: "u1", in: "general")
        #expect(board.takeDue(at: 5900, presence: crowd) == [] && board.takeDue(at: 6000, presence: crowd).count == 1)
        _ = board.takeDue(at: 20_000, presence: crowd)
        #expect(board.isEmpty)
    }

    @Test(
        "SB-61 a channel is sent new names twice a second, the newest of each user, 20 at a time; of very many, that there are others"
    )
    func profiles() {
        func user(_ id: UserID, _ version: Int64) -> UserSummary {
            UserSummary(userId: id, displayName: "\(version)", version: version)
        }
        var board = SignalBoard()
        board.shows(user("bob", 3), in: "general")
        board.shows(user("bob", 2), in: "general")
        board.shows(user("ann", 1), in: "general")
        let first = board.takeDue(at: 0, presence: KnownPresence())
        #expect(first.map(\.users) == [UsersChange(users: [user("bob", 3), user("ann", 1)], isWhole: true)])
        #expect(first.map(\.kind) == [.usersChanged])
        for number in 0..<30 { board.shows(user(UserID("u\(number)"), 1), in: "general") }
        #expect(board.takeDue(at: 499, presence: KnownPresence()) == [])
        let second = board.takeDue(at: 500, presence: KnownPresence()).first?.users
        #expect(second?.users.count == Limits.usersPerSignal && second?.isWhole == true)
        let third = board.takeDue(at: 1000, presence: KnownPresence()).first?.users
        #expect(third?.users.count == 10 && third?.isWhole == true)
        // Of very many, clients ask.
        for number in 0..<1100 { board.shows(user(UserID("u\(number)"), 2), in: "general") }
        var (all, wholes) = (0, Set<Bool>())
        for step: Int64 in 3...60 {
            for signal in board.takeDue(at: step * 500, presence: KnownPresence()) {
                all += signal.users?.users.count ?? 0
                wholes.insert(signal.users?.isWhole ?? true)
            }
        }
        #expect(all == 1000 && wholes == [true, false])
        #expect(board.isEmpty)
    }

    @Test("SB-61 the viewers of a user who changes names again and again are looked up every two seconds; of 20 users at once")
    func changedProfiles() {
        var board = SignalBoard()
        for _ in 0..<100 { board.profileChanged(of: "ann", at: 0) }
        #expect(board.takeChangedProfiles(at: 0) == ["ann"])
        board.profileChanged(of: "ann", at: 100)
        #expect(board.takeChangedProfiles(at: 1999) == [] && !board.isEmpty)
        #expect(board.takeChangedProfiles(at: 2000) == ["ann"])
        // A failed look-up is repeated at once.
        board.lookAgain(for: ["ann"], at: 2001)
        #expect(board.takeChangedProfiles(at: 2001) == ["ann"])
        for number in 0..<20_000 { board.profileChanged(of: UserID("u\(number)"), at: 3000) }
        var found = 0
        for step: Int64 in 0..<2000 { found += board.takeChangedProfiles(at: 3000 + step).count }
        #expect(found == 10_000)
        #expect(board.takeChangedProfiles(at: 10_000) == [] && board.isEmpty)
    }

    @Test("SB-61 a name in many channels is sent to a hundred of them at a time")
    func manyChannels() {
        var board = SignalBoard()
        for number in 0..<250 {
            board.shows(UserSummary(userId: "ann", displayName: "Ann", version: 1), in: ChannelID("c\(number)"))
        }
        let counts = (0..<4).map { board.takeDue(at: Int64($0) * 100, presence: KnownPresence()).count }
        #expect(counts == [100, 100, 50, 0])
    }
}
