import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// Presence over all nodes, on the test's clock and a bus that delivers immediately.
@Suite("Presence over nodes")
struct ClusterPresenceTests {
    private typealias Pair = PresencePair

    @Test("I21 ST-05 numbers that no node can send are ignored", arguments: [-1, Int(Int32.max) + 1, .max])
    func impossibleNumbers(beyond: Int) {
        let pair = Pair()
        pair.pass(100)
        pair.boards[0].cameOnline("ann", in: ["c"])
        _ = pair.ask("c", on: 0)
        for node in [NodeID("forged"), NodeID("another")] {
            pair[0].receive(.heartbeat(node, isNew: false), at: 10_100)
            pair[0].receive(
                .present("c", .init(node: node, online: ["bob"], onlineBeyond: beyond, watchers: [], watchersBeyond: 0)), at: 10_100
            )
        }
        #expect(pair[0].onlineMemberCount(of: "c") == 1)
        let users = (0...1000).map { UserID("u\($0)") }
        pair[0].receive(
            .present("c", .init(node: NodeID("forged"), online: users, onlineBeyond: 0, watchers: [], watchersBeyond: 0)),
            at: 10_100)
        #expect(pair[0].onlineMemberCount(of: "c") == 1)
    }

    @Test("I13 ST-05 a node that asks learns who is online and who watches on other nodes, each user once")
    func asks() {
        let pair = Pair()
        pair.pass(100)
        pair.boards[0].cameOnline("ann", in: ["c"])
        pair.boards[1].cameOnline("ann", in: ["c"])
        pair.boards[1].cameOnline("bob", in: ["c", "d"])
        pair.boards[1].startedWatching("bob", "c")
        #expect(pair[0].onlineMemberCount(of: "c") == 1)
        #expect(pair.ask("c", on: 0))
        #expect(pair[0].onlineMemberCount(of: "c") == 2)
        #expect(pair[0].watchers(of: "c", offset: 0, limit: 10, elsewhere: nil) == ["bob"])
        #expect(pair[0].onlineMemberCount(of: "d") == 0)
    }

    @Test("I13 changes published while the bus was down are requested as soon as a node says that it is back")
    func backAfterOutage() {
        let pair = Pair()
        pair.pass(100)
        _ = pair.ask("c", on: 0)
        pair.silence(0)
        pair.silence(1)
        pair.boards[1].cameOnline("bob", in: ["c"])
        // Sooner than any node is given up.
        #expect(!pair.pass(1000))
        #expect(pair[0].onlineMemberCount(of: "c") == 0)
        pair.unsilence(0)
        pair.unsilence(1)
        for number in [0, 1] { pair[number].sayHello() }
        #expect(pair[0].onlineMemberCount(of: "c") == 1)
    }

    @Test("I13 a node that alone lost its bus for less than the timeout asks the others for changes once it is back")
    func backAlone() {
        let pair = Pair()
        pair.pass(100)
        _ = pair.ask("c", on: 0)
        // The other one hears it throughout, but isn't heard.
        pair.silence(1)
        pair.boards[1].cameOnline("bob", in: ["c"])
        #expect(!pair.pass(1000))
        #expect(pair[0].onlineMemberCount(of: "c") == 0)
        pair.unsilence(1)
        pair[0].returned()
        #expect(pair[0].onlineMemberCount(of: "c") == 1)
    }

    @Test("I18 naming more and more channels makes no node ask about, or remember, more than a bounded number of them")
    func manyChannels() {
        let pair = Pair()
        pair.pass(100)
        for number in 0..<ClusterPresence.askedMax { #expect(pair.ask(ChannelID("c\(number)"), on: 0)) }
        pair.boards[1].cameOnline("bob", in: ["c1", "late", "watched"])
        pair.boards[1].startedWatching("bob", "late")
        // Answered from this node's knowledge: nothing.
        #expect(pair.ask("late", on: 0))
        #expect(pair[0].onlineMemberCount(of: "late") == 0)
        #expect(pair.ask("c1", on: 0))
        // Watched channels are still asked about.
        pair.boards[0].startedWatching("ann", "watched")
        #expect(pair[0].onlineMemberCount(of: "watched") == 1)
        // The others are forgotten in time, which makes room.
        pair.pass(16_000)
        #expect(pair.ask("late", on: 0))
        #expect(pair[0].onlineMemberCount(of: "late") == 1)
    }

    @Test("I13 I18 however many channels are watched here, the other nodes are asked about one that isn't")
    func manyWatchedChannels() {
        let pair = Pair()
        pair.pass(100)
        for number in 0..<ClusterPresence.askedMax { pair.boards[0].startedWatching("ann", ChannelID("w\(number)")) }
        pair.boards[1].cameOnline("bob", in: ["late"])
        #expect(pair.ask("late", on: 0))
        #expect(pair[0].onlineMemberCount(of: "late") == 1)
    }

    /// Asks which of some users are connected elsewhere; nil while there is no answer.
    private func elsewhere(_ users: [UserID], _ pair: Pair, passing milliseconds: Int64 = 0) -> Set<UserID>? {
        let answer = Mutex<Set<UserID>?>(nil)
        #expect(pair.askWho(users) { found in answer.withLock { $0 = found } })
        pair.pass(milliseconds, ticking: [0])
        return answer.withLock { $0 }
    }

    @Test(
        "SB-64 D-38 nodes are asked which of some users are connected, and answered within 250 ms even if one is silent"
    )
    func connected() {
        let pair = Pair()
        // Before another node is known, nobody is asked.
        #expect(Set(pair.boards.map { $0.isConnected("bob") }) == [false])
        pair.pass(100)
        for user in ["ann", "bob", "cid"] as [UserID] { pair.boards[1].connected(user) }
        pair.boards[1].disconnected("cid")
        #expect(elsewhere(["ann", "cid", "dan"], pair) == ["ann"])
        #expect(elsewhere([], pair) == [])
        pair.silence(1)
        #expect(elsewhere(["ann"], pair, passing: 200) == nil)
        #expect(elsewhere(["ann"], pair, passing: 250) == [])
        // A node that is gone is no longer awaited, and later not asked.
        let answers = Mutex(0)
        #expect(pair.askWho(["ann"]) { _ in answers.withLock { $0 += 1 } })
        pair[0].receive(.goodbye(NodeID("n1")), at: 10_000)
        #expect(answers.withLock { $0 } == 1)
        #expect(elsewhere(["ann"], pair) == [])
    }

    @Test("I21 SB-64 unrequested answers change nothing; of 10,001 pending queries the last is refused")
    func queries() {
        let pair = Pair()
        pair.pass(100)
        pair.silence(1)
        let found = Mutex<[Set<UserID>]>([])
        #expect(pair.askWho(["ann"]) { users in found.withLock { $0.append(users) } })
        for node in ["forged", "n1", "n1"] { pair[0].receive(.connected(["bob"], question: 7, NodeID(node)), at: 10_000) }
        pair[0].receive(.connected(["ann"], question: 1, NodeID("forged")), at: 10_000)
        #expect(found.withLock { $0 } == [])
        pair[0].receive(.connected(["bob", "ann"], question: 1, NodeID("n1")), at: 10_000)
        pair[0].receive(.connected(["ann"], question: 1, NodeID("n1")), at: 10_000)
        #expect(found.withLock { $0 } == [["ann"]])
        for _ in 0..<10_000 { #expect(pair.askWho(["ann"]) { users in found.withLock { $0.append(users) } }) }
        #expect(!pair.askWho(["ann"]) { _ in })
        pair.pass(300, ticking: [0])
        #expect(found.withLock { $0.count } == 10_001)
        #expect(pair.askWho(["ann"]) { _ in })
    }

    @Test("I13 nodes that have asked are notified of changes within 100 ms")
    func changes() {
        let pair = Pair()
        pair.pass(100)
        #expect(pair.ask("c", on: 0))
        pair.boards[1].cameOnline("bob", in: ["c"])
        pair.pass(150)
        #expect(pair[0].onlineMemberCount(of: "c") == 1)
        pair.boards[1].wentOffline("bob", in: ["c"])
        pair.pass(150)
        #expect(pair[0].onlineMemberCount(of: "c") == 0)
    }

    @Test("I13 an answer in progress isn't overtaken by the news of a change meanwhile: the last that a node sends is right")
    func answersInOrder() async throws {
        let board = PresenceBoard()
        let said = Mutex<[[UserID]]>([])
        let (isAnswering, isReported) = (MonotonicSemaphore(), MonotonicSemaphore())
        let presence = ClusterPresence(node: NodeID("a"), board: board) { _, message in
            guard case .present(_, let present) = message else { return }
            // The answer's thread pauses for as long as news that doesn't wait for it takes.
            if present.online.isEmpty {
                isAnswering.signal()
                _ = isReported.wait(atMost: .milliseconds(300))
            }
            said.withLock { $0.append(present.online) }
            if !present.online.isEmpty { isReported.signal() }
        }
        board.onChange { presence.changed($0) }
        Thread.detachNewThread { presence.receive(.ask("c", from: NodeID("b")), at: 10_000) }
        #expect(isAnswering.wait(atMost: .seconds(20)))
        board.cameOnline("bob", in: ["c"])
        _ = presence.tick(at: 10_200)
        try await Polling.value {
            said.withLock { $0 }
        } until: {
            $0.count == 2
        }
        #expect(said.withLock { $0 } == [[], ["bob"]])
    }

    @Test("I13 a node that is silent for 3 s is gone, and its users with it; one that says goodbye is gone at once")
    func lost() {
        let pair = Pair()
        pair.boards[1].cameOnline("bob", in: ["c"])
        pair.pass(100)
        #expect(pair.ask("c", on: 0))
        #expect(pair[0].nodeCount == 1)
        pair.silence(1)
        #expect(!pair.pass(2500, ticking: [0]))
        #expect(pair.pass(1500, ticking: [0]))
        #expect(pair[0].nodeCount == 0)
        #expect(pair[0].onlineMemberCount(of: "c") == 0)

        let other = Pair()
        other.pass(100)
        other[1].sayGoodbye()
        #expect(other[0].nodeCount == 0)
        // Its threads haven't ended yet. Nodes that start or return aren't told that it exists either.
        other.pass(1200, ticking: [1])
        other[0].sayHello()
        other[1].returned()
        #expect(other[0].nodeCount == 0)
    }

    /// The users whom one of two nodes reports as come or gone on the other, as watchers or online.
    private func reported(on pair: Pair, _ body: () -> Void) -> [[UserID?]] {
        let reported = Mutex<[[UserID?]]>([[], []])
        pair[0].onWatching { user, _ in reported.withLock { $0[0].append(user) } }
        pair[0].onOnline { user, _ in reported.withLock { $0[1].append(user) } }
        body()
        return reported.withLock { $0 }.map { $0.sorted { $0?.rawValue ?? "" < $1?.rawValue ?? "" } }
    }

    @Test(
        "I13 ST-13 SB-63 watchers are notified that a lost node's users are gone, and that they are back once it is heard again")
    func returns() {
        let pair = Pair()
        pair.boards[1].cameOnline("bob", in: ["c"])
        pair.boards[1].startedWatching("bob", "c")
        pair.pass(100)
        #expect(pair.ask("c", on: 0))
        pair.boards[0].startedWatching("ann", "c")
        pair.silence(1)
        #expect(reported(on: pair) { pair.pass(4000, ticking: [0]) } == [["bob"], ["bob"]])
        pair.unsilence(1)
        #expect(reported(on: pair) { pair.pass(1200) } == [["bob"], ["bob"]])
        #expect(pair[0].isWatchingElsewhere("bob", "c") && pair[0].isOnlineElsewhere("bob", "c"))
        #expect(reported(on: pair) { pair.pass(20_000) } == [[], []], "nobody has come or gone")
    }

    @Test("I13 a node that was given up without noticing is notified of changes again as soon as it is heard")
    func givenUpAlone() {
        let pair = Pair()
        pair.pass(100)
        pair.boards[0].startedWatching("ann", "c")
        // It hears the other one throughout.
        pair.silence(0)
        #expect(pair.pass(3500) && pair[1].nodeCount == 0 && pair[0].nodeCount == 1)
        pair.unsilence(0)
        pair.pass(1000)
        pair.boards[1].cameOnline("bob", in: ["c"])
        pair.pass(200)
        #expect(pair[0].onlineMemberCount(of: "c") == 1)
    }

    @Test("ST-09 ST-13 X-37 a node asks about a channel while it is watched, by any call and by invisible users too")
    func watchedByAnyCall() {
        let pair = Pair()
        pair.boards[1].cameOnline("bob", in: ["c"])
        pair.boards[1].startedWatching("bob", "c")
        pair.pass(100)
        // An invisible user, whose call hasn't asked.
        #expect(reported(on: pair) { pair.boards[0].startedWatching("ann", "c", isShown: false) } == [["bob"], ["bob"]])
        #expect(pair.boards[0].watcherCount(of: "c") == 0 && pair[0].watcherCount(of: "c") == 1)
        pair.pass(30_000)
        #expect(
            reported(on: pair) {
                pair.boards[1].stoppedWatching("bob", ["c"])
                pair.boards[1].wentOffline("bob", in: ["c"])
                pair.pass(200)
            } == [["bob"], ["bob"]])
        // Nobody watches any longer, and nobody asks.
        pair.boards[0].stoppedWatching("ann", ["c"], isShown: false)
        pair.pass(40_000)
        #expect(
            reported(on: pair) {
                pair.boards[1].startedWatching("bob", "c")
                pair.pass(200)
            } == [[], []])
    }

    @Test("I13 ST-13 a node that is alone when a user begins to watch asks the next one that starts")
    func alone() {
        let pair = Pair()
        pair.pass(100)
        pair.silence(1)
        pair.pass(5000, ticking: [0])
        #expect(pair[0].nodeCount == 0)
        pair.boards[0].startedWatching("ann", "c")
        pair.boards[1].startedWatching("bob", "c")
        pair.unsilence(1)
        #expect(reported(on: pair) { pair.pass(1200) } == [["bob"], []])
    }

    @Test(
        "I18 a node that answers late is still heard: watchers are notified, and the next query waits for it"
    )
    func answersLate() {
        let pair = Pair()
        pair.boards[1].startedWatching("bob", "c")
        pair.pass(100)
        pair.silence(1)
        #expect(!pair.ask("c", on: 0))
        pair.pass(300, ticking: [0])
        pair.boards[0].startedWatching("ann", "c")
        #expect(!pair.ask("c", on: 0))
        pair.unsilence(1)
        #expect(reported(on: pair) { pair.pass(6000) } == [["bob"], []])
        #expect(pair.ask("c", on: 0))
    }

    @Test(
        "ST-12 ST-13 SB-63 D-38 beyond 1,000 watchers or online members of another node it is reported that some came or went, never who stayed",
        arguments: [true, false])
    func unnamed(isWatching: Bool) {
        let pair = Pair()
        let reported = Mutex<[UserID?]>([])
        let report: @Sendable (UserID?, ChannelID) -> Void = { user, _ in reported.withLock { $0.append(user) } }
        pair.pass(100)
        if isWatching { pair[0].onWatching(report) } else { pair[0].onOnline(report) }
        pair.boards[0].startedWatching("ann", "c")
        func come(_ user: UserID) {
            if isWatching { pair.boards[1].startedWatching(user, "c") } else { pair.boards[1].cameOnline(user, in: ["c"]) }
        }
        func go(_ user: UserID) {
            if isWatching { pair.boards[1].stoppedWatching(user, ["c"]) } else { pair.boards[1].wentOffline(user, in: ["c"]) }
        }
        /// The number on the other node.
        var count: Int { isWatching ? pair[0].watcherCount(of: "c") - 1 : pair[0].onlineMemberCount(of: "c") }
        for number in 0..<1000 { come(UserID("u\(number)")) }
        pair.pass(200)
        #expect(pair.ask("c", on: 0))
        func changes(_ body: () -> Void) -> [UserID?] {
            reported.withLock { $0 = [] }
            body()
            pair.pass(200)
            return reported.withLock { $0 }
        }
        #expect(changes { go("u0") } == ["u0"])
        #expect(changes { come("u0") } == ["u0"])
        #expect(changes { come("more") } == [nil])
        #expect(count == 1001)
        // If as many come as go, the watchers that are named show it; which members are named follows no order.
        let swap = changes {
            go("u5")
            come("w")
        }
        let expected: [UserID?] = isWatching ? [nil] : []
        #expect(swap == expected && count == 1001)
        // When a named user goes, another becomes named: neither is reported.
        #expect(changes { go("u6") } == [nil])
        #expect(changes { go("more") } == ["more"])
        _ = changes { for number in 0..<10 { come(UserID("v\(number)")) } }
        pair.silence(1)
        #expect(changes { pair[0].receive(.goodbye(NodeID("n1")), at: 20_000) }.contains(nil))
        #expect(count == 0)
    }

    @Test("I13 the silence after which a node is gone can be set, from 2 s to 60 s", arguments: [2, 10, 60])
    func timeout(seconds: Int64) {
        let pair = Pair(timeout: .seconds(seconds))
        pair.pass(1100)
        pair.silence(1)
        // The last heartbeat is up to a second old.
        #expect(!pair.pass(seconds * 1000 - 1100, ticking: [0]))
        #expect(pair.pass(1200, ticking: [0]))
        #expect(pair[0].nodeCount == 0)
    }

    @Test("I13 a server whose presence timeout is outside its limits doesn't start", arguments: [0, 1.9, 60.1, -3])
    func timeoutLimits(seconds: Double) async throws {
        let refusal = await #expect(throws: RoostError.self) {
            _ = try await TestServer { $0.presenceTimeout = .seconds(seconds) }
        }
        #expect(refusal?.field == "presenceTimeout")
    }

    @Test("I18 a server waits 250 ms for other nodes, as documented for operators")
    func standard() {
        #expect(RoostServer.Configuration(dataDirectory: TemporaryDirectory.make()).gatherTimeout == .milliseconds(250))
    }

    @Test("I18 a node that doesn't answer is awaited for 250 ms at most; channels no longer asked about are forgotten")
    func bounded() {
        let pair = Pair()
        pair.pass(100)
        pair.silence(1)
        let isReady = Mutex(false)
        #expect(!pair.ask("c", on: 0))
        pair[0].prepare("c", at: 10_100) { isReady.withLock { $0 = true } }
        pair.pass(200, ticking: [0])
        #expect(!isReady.withLock { $0 })
        pair.pass(150, ticking: [0])
        #expect(isReady.withLock { $0 })
    }

    @Test("ST-12 pages of watchers reach beyond the thousand that another node names")
    func pagesOfCrowds() {
        let pair = Pair()
        pair.pass(100)
        for number in 1...200 { pair.boards[0].startedWatching(UserID("here \(number)"), "c") }
        for number in 1...2500 { pair.boards[1].startedWatching(UserID("there \(number)"), "c") }
        // A user who watches on both has their place here.
        pair.boards[1].startedWatching("here 7", "c")
        pair.pass(200)
        #expect(pair.ask("c", on: 0))
        #expect(pair[0].watcherCount(of: "c") == 2701)
        var all: [UserID] = []
        while let page = pair.watchers(of: "c", all.count..<all.count + 300), !page.isEmpty { all += page }
        #expect(all == (1...200).map { UserID("here \($0)") } + (1...2500).map { UserID("there \($0)") })
        // If a node doesn't answer, the page has the users whom it has named.
        pair.silence(1)
        #expect(pair.watchers(of: "c", 1100..<1400) == nil)
        let waited = Mutex<[UserID]?>(nil)
        #expect(pair[0].prepareWatchers(of: "c", upTo: 1400, at: 10_000) { elsewhere in waited.withLock { $0 = elsewhere } })
        pair.pass(400, ticking: [0])
        #expect(waited.withLock { $0?.count } == 1000)
    }

    @Test("I18 a thousand users of a crowd are named, and the others counted")
    func crowds() {
        let pair = Pair()
        pair.pass(100)
        for number in 1...1500 { pair.boards[1].cameOnline(UserID("u\(number)"), in: ["c"]) }
        pair.boards[0].cameOnline("ann", in: ["c"])
        #expect(pair.ask("c", on: 0))
        #expect(pair[0].onlineMemberCount(of: "c") == 1501)
    }

    @Test("I13 a packet that a node sent before it was given up is ignored when it arrives later")
    func lateWord() {
        let board = PresenceBoard()
        let (a, b) = (NodeID("a"), NodeID("b"))
        let presence = ClusterPresence(node: a, board: board) { _, _ in }
        board.startedWatching("zoe", "general")
        presence.watched("general", at: 0)
        let word = ClusterPresence.Present(node: b, online: ["ann"], onlineBeyond: 0, watchers: ["ann"], watchersBeyond: 0)
        presence.receive(.heartbeat(b, isNew: false), at: 0)
        presence.receive(.present("general", word), at: 0)
        #expect(presence.onlineMemberCount(of: "general") == 1)
        #expect(presence.tick(at: 60_000))
        presence.receive(.present("general", word), at: 60_001)
        #expect(presence.onlineMemberCount(of: "general") == 0 && presence.watcherCount(of: "general") == 1)
        // It wasn't gone: it is asked again.
        presence.receive(.heartbeat(b, isNew: false), at: 60_002)
        presence.receive(.present("general", word), at: 60_003)
        #expect(presence.onlineMemberCount(of: "general") == 1)
    }

    @Test("I3 a node that starts, has its bus again, or is heard after it was given up counts as new: its packets may be lost")
    func thereAnew() {
        let (a, b) = (NodeID("a"), NodeID("b"))
        let presence = ClusterPresence(node: a, board: PresenceBoard()) { _, _ in }
        #expect(presence.receive(.heartbeat(b, isNew: false), at: 0))
        #expect(!presence.receive(.heartbeat(b, isNew: false), at: 1000))
        #expect(presence.receive(.heartbeat(b, isNew: true), at: 1500))
        #expect(!presence.receive(.rulesChanged, at: 1600))
        #expect(presence.tick(at: 60_000))
        #expect(presence.receive(.heartbeat(b, isNew: false), at: 60_001))
        #expect(!presence.receive(.heartbeat(a, isNew: true), at: 60_002))
    }
}
