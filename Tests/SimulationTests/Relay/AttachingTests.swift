import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// How sockets attach to a channel whose events the node has yet to get, step by step.
@Suite("Attaching to a relay")
struct AttachingTests {
    /// A relay that is given one input after another, each with time enough to request missing events.
    private struct Node {
        let channel: ChannelID = "c"
        var stream: StreamID { .channel(channel) }
        private var relay = Relay()
        private var time: Relay.Time = 0

        /// A node with zoe's connection in the channel, which is brought up to a seq.
        init(at seq: Seq) {
            connect(1, "zoe", UserStreams(user: 5, channels: [channel: seq]))
            hand(.opened([stream: seq]))
        }

        /// The items of ann's own stream after 4: she has joined the channel at 5, and hidden it at 9, where the row is now.
        var annsItems: [StreamItem] {
            let joined = [StreamItem.Place(channel: channel, seq: 36)]
            return [
                StreamItem(stream: .user("ann"), after: 4, seq: 6, json: []),
                StreamItem(stream: .user("ann"), after: 6, seq: 9, joined: joined, json: []),
            ]
        }

        var parked: [Seq] { relay.feeds[stream]?.parked.map(\.seq) ?? [] }

        func isFetching(_ stream: StreamID) -> Bool { relay.feeds[stream]?.isFetching == true }

        @discardableResult
        mutating func hand(_ input: Relay.Input) -> (steps: [Relay.Step], requests: [Relay.Request]) {
            time += 20
            relay.handle(input, at: time)
            relay.handle(.tick, at: time)
            return relay.takeOutput()
        }

        @discardableResult
        mutating func connect(_ number: Int64, _ user: UserID, _ streams: UserStreams) -> [Relay.Step] {
            let notice = Notice.connected(ConnectionID(rawValue: number), user, streams)
            let steps = hand(.committed([.init(items: [], attachments: [notice], answer: Self.answer(to: number))])).steps
            return steps + hand(.opened([.user(user): streams.user])).steps
        }

        /// Returns the commit of a call by a user's connection.
        mutating func commit(
            _ items: [StreamItem], _ attachments: [Notice] = [], by user: UserID, _ number: Int64, callerSeq: Seq
        ) -> [Relay.Step] {
            let operation = Relay.LocalOperation(
                items: items, attachments: attachments, answer: Self.answer(to: number), user: user, channel: channel,
                callerSeq: callerSeq)
            return hand(.committed([operation])).steps
        }

        /// A user has joined the channel, on another node.
        mutating func join(_ user: UserID, at seq: Seq, userSeq: Seq) {
            let joined = [StreamItem.Place(channel: channel, seq: seq)]
            hand(.received([StreamItem(stream: .user(user), after: userSeq - 1, seq: userSeq, joined: joined, json: [])]))
        }

        /// Hands over the item that the feed was missing.
        ///
        /// - Parameter head: The head of the stream; nil for the item's end.
        mutating func fetch(
            _ item: StreamItem, hasMore: Bool = false, head: Seq? = nil
        ) -> (steps: [Relay.Step], requests: [Relay.Request]) {
            hand(
                .fetched(
                    .init(stream: stream, after: item.after, purpose: .gap),
                    .init(items: [item], seq: item.seq, hasMore: hasMore, head: head ?? item.seq)))
        }

        /// Hands over the items that the feed of a user's own stream was missing.
        mutating func fetch(_ items: [StreamItem], of user: UserID, after: Seq) -> (steps: [Relay.Step], requests: [Relay.Request])
        {
            hand(
                .fetched(
                    .init(stream: .user(user), after: after, purpose: .gap),
                    .init(items: items, seq: items.last?.seq ?? after, hasMore: false, head: items.last?.seq ?? after)))
        }

        /// Hands over the item that the receiver catching up was missing.
        mutating func fetchForNewcomer(
            _ item: StreamItem, hasMore: Bool = false
        ) -> (steps: [Relay.Step], requests: [Relay.Request]) {
            let token = relay.feeds[stream]?.catchUps.keys.first ?? 0
            return hand(
                .fetched(
                    .init(stream: stream, after: item.after, purpose: .catchUp(token)),
                    .init(items: [item], seq: item.seq, hasMore: hasMore, head: item.seq)))
        }

        /// Reports that the database has nothing newer than a seq for the receiver catching up.
        mutating func fetchNothing(after seq: Seq) -> (steps: [Relay.Step], requests: [Relay.Request]) {
            let token = relay.feeds[stream]?.catchUps.keys.first ?? 0
            return hand(
                .fetched(
                    .init(stream: stream, after: seq, purpose: .catchUp(token)),
                    .init(items: [], seq: seq, hasMore: false, head: seq)))
        }

        /// Reports that the database can't read the events for the receiver catching up.
        mutating func failForNewcomer(after seq: Seq) {
            let token = relay.feeds[stream]?.catchUps.keys.first ?? 0
            hand(.unreadable(.init(stream: stream, after: seq, purpose: .catchUp(token))))
        }

        /// Lets time pass.
        @discardableResult
        mutating func wait(_ milliseconds: Relay.Time) -> [Relay.Request] {
            time += milliseconds
            return hand(.tick).requests
        }

        /// Hands over the streams of a user whose connection waits for them to be read again.
        mutating func readStreams(_ streams: UserStreams) -> (steps: [Relay.Step], requests: [Relay.Request]) {
            hand(.streamsRead(relay.connects.keys.first ?? 0, streams))
        }

        func item(_ after: Seq, _ seq: Seq, left: [StreamItem.Leaving] = [], isDeletion: Bool = false) -> StreamItem {
            StreamItem(stream: stream, after: after, seq: seq, left: left, isDeletion: isDeletion, json: [])
        }

        private static func answer(to number: Int64) -> Committed.Answer {
            .socket(SocketID(shard: 0, connection: ConnectionID(rawValue: number)), [])
        }
    }

    private func isAnswer(_ step: Relay.Step, to number: Int64) -> Bool {
        if case .answer(.socket(let socket, _)) = step { socket.connection.rawValue == number } else { false }
    }

    /// What steps report about watches, the past and the channel's end.
    private func reports(_ steps: [Relay.Step]) -> [String] {
        steps.compactMap { step -> String? in
            switch step {
            case .watches(_, let user, _, _, _): "\(user) watches"
            case .past(let item, let receiver): "\(receiver.user) gets \(item.seq)"
            case .change(.stoppedWatching(_, let user, _)): "\(user) stopped"
            case .change(.channelDeleted): "deleted"
            default: nil
            }
        }
    }

    /// The seqs after which events are read for newcomers.
    private func fetches(_ requests: [Relay.Request]) -> [Seq] {
        requests.compactMap { if case .fetch(let fetch) = $0, fetch.purpose != .gap { fetch.after } else { nil } }
    }

    /// Which leavers each read is to report.
    private func leavers(_ requests: [Relay.Request]) -> [MissedEvents.Leavers] {
        requests.compactMap { if case .fetch(let fetch) = $0 { fetch.leavers } else { nil } }
    }

    @Test("I6 unannounced commits of another node for a connection's user are fetched at once if the connection needs them")
    func unannounced() {
        var node = Node(at: 10)
        // Ben has joined a channel through another node, and connects again.
        node.connect(3, "ben", UserStreams(user: 5))
        node.connect(4, "ben", UserStreams(user: 7))
        #expect(node.isFetching(.user("ben")))
    }

    @Test("I6 unannounced events of a channel that a connection needs are fetched at once, and it is welcomed with them")
    func unannouncedInChannel() {
        var node = Node(at: 10)
        node.connect(4, "ben", UserStreams(user: 7, channels: [node.channel: 12]))
        #expect(node.parked == [12])
        node.hand(.tick)
        #expect(node.isFetching(node.stream))
        #expect(node.fetch(node.item(10, 12)).steps.contains { isAnswer($0, to: 4) })
        // Events that the node already has are fetched for no connection.
        node.connect(5, "dan", UserStreams(user: 3, channels: [node.channel: 12]))
        node.hand(.tick)
        #expect(!node.isFetching(node.stream))
    }

    @Test("I3 I23 nothing waits for missed events that the database can't read, and they are read again after five seconds")
    func unreadable() {
        var node = Node(at: 10)
        node.hand(.received([node.item(11, 12)]))
        node.hand(.tick)
        #expect(node.isFetching(node.stream))
        node.hand(.unreadable(.init(stream: node.stream, after: 10, purpose: .gap)))
        let answered = node.commit([node.item(12, 13)], by: "zoe", 1, callerSeq: 5)
        #expect(answered.contains { isAnswer($0, to: 1) })
        let welcomed = node.connect(4, "ben", UserStreams(user: 7, channels: [node.channel: 13]))
        #expect(welcomed.contains { isAnswer($0, to: 4) })
        #expect(node.parked == [13] && !node.isFetching(node.stream))
        node.wait(5000)
        #expect(node.isFetching(node.stream))
        let connection = ConnectionID(rawValue: 4)
        let read = node.fetch(node.item(10, 13)).steps
        #expect(read.contains { if case .attach(connection, node.channel) = $0 { true } else { false } })
    }

    @Test("I3 I23 a receiver whose missed events the database can't read delays no answer; they are read again after five seconds")
    func unreadableForNewcomer() {
        var node = Node(at: 10)
        node.connect(2, "ann", UserStreams(user: 5))
        node.hand(.received([node.item(10, 11), node.item(11, 12)]))
        node.join("ann", at: 11, userSeq: 6)
        node.failForNewcomer(after: 11)
        let answered = node.commit([node.item(12, 13)], by: "ann", 2, callerSeq: 6)
        #expect(answered.contains { isAnswer($0, to: 2) })
        #expect(fetches(node.wait(5000)) == [11])
    }

    @Test("I18 while the database doesn't answer, at most two comparisons wait, and all streams are compared once it does")
    func silentDatabase() {
        var relay = Relay()
        let streams = (0..<3000).map { StreamID.channel(ChannelID("c\($0)")) }
        for stream in streams { relay.follow(stream) }
        relay.handle(.opened(Dictionary(uniqueKeysWithValues: streams.map { ($0, 1) })), at: 0)
        _ = relay.takeOutput()
        relay.handle(.recheckAll, at: 0)
        var (waiting, compared): ([[StreamID]], Set<StreamID>) = ([], [])
        for time in stride(from: Relay.Time(20), through: 60_000, by: 20) {
            relay.handle(.tick, at: time)
            for case .readHeads(let part) in relay.takeOutput().requests { waiting.append(part) }
            #expect(waiting.count <= 2)
            // A failure takes a while. The database is back for the last seconds.
            guard time % 300 == 0, !waiting.isEmpty else { continue }
            let part = waiting.removeFirst()
            guard time > 50_000 else {
                relay.handle(.headsFailed(part), at: time)
                continue
            }
            compared.formUnion(part)
            relay.handle(.heads(Dictionary(uniqueKeysWithValues: part.map { ($0, 1) })), at: time)
        }
        #expect(compared == Set(streams))
    }

    @Test("I3 I9 a connection that waits to be attached behind another gets its own events before the reply")
    func answersOfWhoIsParked() {
        // Bob's connection needs the channel from 122 on, and ann has joined at 123.
        var node = Node(at: 120)
        node.connect(2, "ann", UserStreams(user: 5))
        node.connect(3, "bob", UserStreams(user: 5, channels: [node.channel: 122]))
        node.join("ann", at: 123, userSeq: 6)

        // She sends: 124, which arrives here together with her joining.
        #expect(node.commit([node.item(123, 124)], by: "ann", 2, callerSeq: 6).isEmpty)
        let first = node.fetch(node.item(120, 124, left: [.init(user: "ann", seq: 123)])).steps
        #expect(first.contains { if case .attach = $0 { true } else { false } }, "bob is attached, and ann's reply waits")
        #expect(!first.contains { isAnswer($0, to: 2) })
        let kinds = node.fetchForNewcomer(node.item(123, 124)).steps.compactMap { step -> String? in
            switch step {
            case .past(let item, _): "past \(item.seq)"
            case .change(.joined(let user, _, _, _)): "joined \(user)"
            default: isAnswer(step, to: 2) ? "answer" : nil
            }
        }
        #expect(kinds == ["past 124", "joined ann", "answer"])
    }

    @Test("I9 a joining that is read at a later place, since its row has changed, comes before the reply that relied on it")
    func joiningThatMoved() {
        // Ann has joined on another node, at 5 of her own stream, which wasn't announced here.
        var node = Node(at: 60)
        node.connect(2, "ann", UserStreams(user: 4))
        let early = node.commit([node.item(60, 61)], by: "ann", 2, callerSeq: 5)
        #expect(!early.contains { isAnswer($0, to: 2) })
        let first = node.fetch(node.annsItems, of: "ann", after: 4)
        #expect(fetches(first.requests) == [36])
        #expect(!first.steps.contains { isAnswer($0, to: 2) })
        let second = node.fetchForNewcomer(node.item(36, 61)).steps
        let past = second.firstIndex { if case .past(let item, _) = $0 { item.seq == 61 } else { false } }
        let answer = second.firstIndex { isAnswer($0, to: 2) }
        #expect(past != nil && answer != nil)
        if let past, let answer { #expect(past < answer) }
    }

    @Test("I6 a connection that was read before a joining moved begins only once the joining is there, and gets nothing twice")
    func connectionBeforeAJoiningThatMoved() {
        var node = Node(at: 60)
        node.connect(2, "ann", UserStreams(user: 4))
        // Her second connection has read her streams at 6, the channel with them. The node doesn't know yet that she is a member.
        node.connect(3, "ann", UserStreams(user: 6, channels: [node.channel: 58]))
        let first = node.fetch(node.annsItems, of: "ann", after: 4)
        #expect(fetches(first.requests) == [36])
        #expect(first.requests.contains { if case .readStreams("ann", _) = $0 { true } else { false } })
        let isConnected = first.steps.contains { if case .change(.connected) = $0 { true } else { false } }
        #expect(!isConnected)
    }

    @Test(
        "ST-01 I9 a watch that was requested after joining outlives an event that reports an earlier leaving",
        arguments: [123, 124] as [Seq])
    func watchBehindAJoining(leftSeq: Seq) {
        // Ann joins at 123, and watches at once. Both wait for the node to get there.
        var node = Node(at: 120)
        node.connect(2, "ann", UserStreams(user: 5))
        node.join("ann", at: 123, userSeq: 6)
        let connection = ConnectionID(rawValue: 2)
        _ = node.commit([], [.watching(connection, "ann", node.channel, at: 123)], by: "ann", 2, callerSeq: 6)

        // The rows show that ann had left before, or that she has left since: then her watch has ended too.
        let steps = node.fetch(node.item(120, 124, left: [.init(user: "ann", seq: leftSeq)])).steps
        let leaving = steps.firstIndex { if case .change(.left("ann", _, leftSeq, _)) = $0 { true } else { false } }
        let watchesOn = steps[(leaving ?? steps.endIndex)...].contains {
            if case .watches(connection, "ann", _, 123, _) = $0 { true } else { false }
        }
        #expect(leaving != nil)
        #expect(watchesOn == (leftSeq == 123))
    }

    @Test("ST-01 I21 a watch of a stream that the database doesn't have yet is made after three vain reads")
    func positionAheadOfTheDatabase() {
        var node = Node(at: 10)
        node.connect(2, "ann", UserStreams(user: 5))
        // The highest position that a packet can have, which was never committed.
        node.hand(.received([node.item(10, Limits.seqMax)]))
        let connection = ConnectionID(rawValue: 2)
        let watch = Notice.watching(connection, "ann", node.channel, at: 12)
        _ = node.commit([], [watch], by: "ann", 2, callerSeq: 5)
        #expect(fetches(node.fetchNothing(after: 12).requests) == [12])
        #expect(fetches(node.fetchNothing(after: 12).requests) == [12])
        let last = node.fetchNothing(after: 12)
        #expect(fetches(last.requests) == [])
        #expect(last.steps.contains { if case .attachWatcher(connection, node.channel) = $0 { true } else { false } })
    }

    @Test("I6 I18 a connection of a user whose stream is ahead of the database is welcomed after three vain reads")
    func userAheadOfTheDatabase() {
        var node = Node(at: 10)
        node.connect(2, "ann", UserStreams(user: 5))
        // Ann is at 9 here. Then the database went back to 7, where her second connection reads her streams.
        node.hand(.received([5, 6, 7, 8].map { StreamItem(stream: .user("ann"), after: $0, seq: $0 + 1, json: []) }))
        let begun = node.connect(3, "ann", UserStreams(user: 7))
        #expect(!begun.contains { isAnswer($0, to: 3) })
        for _ in 0..<2 {
            let read = node.readStreams(UserStreams(user: 7))
            #expect(read.requests.contains { if case .readStreams("ann", _) = $0 { true } else { false } })
        }
        let last = node.readStreams(UserStreams(user: 7))
        let isReadAgain = last.requests.contains { if case .readStreams = $0 { true } else { false } }
        #expect(!isReadAgain)
        #expect(last.steps.contains { isAnswer($0, to: 3) })
    }

    @Test("I6 a connection that waits behind its user's joining continues after its events, once the user has left")
    func connectionBehindAMember() {
        // Ann joins at 50, and connects again when the channel is at 53.
        var node = Node(at: 49)
        node.connect(2, "ann", UserStreams(user: 9))
        node.join("ann", at: 50, userSeq: 10)
        node.connect(3, "ann", UserStreams(user: 10, channels: [node.channel: 53]))
        // The channel is brought to 54, and ann from 50 to 55: both connections have that. Then they have left.
        let first = node.fetch(node.item(49, 54, left: [.init(user: "ann", seq: 50)]), hasMore: true)
        #expect(fetches(first.requests) == [50])
        let second = node.fetchForNewcomer(node.item(50, 55), hasMore: true)
        #expect(fetches(second.requests) == [55])
        let third = node.fetchForNewcomer(node.item(55, 57, left: [.init(user: "ann", seq: 57)]))
        // Nothing is read for the new connection from 53 on: it waits for the channel at 55.
        #expect(fetches(third.requests) == [])
        #expect(node.parked == [55])
    }

    @Test(
        "I9 I18 a page reports leavers once: between two pages no ended membership attaches anyone, and the next membership holds")
    func endedBetweenPages() {
        // Ann joined at 50, left at 60 and came back at 70. The node is at 20, and learns only of the first joining.
        var node = Node(at: 20)
        node.connect(2, "ann", UserStreams(user: 5))
        node.join("ann", at: 50, userSeq: 6)
        #expect(node.parked == [50])
        let first = node.fetch(node.item(20, 40, left: [.init(user: "ann", seq: 70)]), hasMore: true, head: 80)
        let leaving = first.steps.contains { if case .change(.left("ann", _, 40, _)) = $0 { true } else { false } }
        #expect(leaving)
        #expect(leavers(first.requests) == [.joinedAfter(80)])
        // Nor does a connection that was read before the leaving, at the node's very place.
        let connecting = node.connect(3, "ann", UserStreams(user: 6, channels: [node.channel: 40]))
        let begun = connecting.compactMap { if case .change(.connected(_, _, let streams)) = $0 { streams.channels } else { nil } }
        let isBegun = connecting.contains { if case .attach = $0 { true } else { false } }
        #expect(begun == [[:]] && !isBegun)

        // The second page doesn't mention her, and ends where she had joined.
        let second = node.fetch(node.item(40, 50), hasMore: true, head: 80).steps
        let isAttached = second.contains { if case .change(.joined) = $0 { true } else { false } }
        #expect(!isAttached && node.parked == [])
        _ = node.fetch(node.item(50, 80))

        let joined = [StreamItem.Place(channel: node.channel, seq: 70)]
        let back = node.hand(.received([StreamItem(stream: .user("ann"), after: 6, seq: 8, joined: joined, json: [])]))
        #expect(fetches(back.requests) == [70] && leavers(back.requests) == [.user("ann")])
        let third = node.fetchForNewcomer(node.item(70, 80)).steps
        let holds = third.contains { if case .change(.joined("ann", _, 80, _)) = $0 { true } else { false } }
        #expect(holds)
    }

    @Test(
        "ST-06 I6 a watcher gets the channel's end and stops watching, even if the node is behind the watch or ahead of it",
        arguments: [13, 7] as [Seq])
    func deletedBeforeAttached(watchedSeq: Seq) {
        var node = Node(at: 10)
        node.connect(2, "ann", UserStreams(user: 5))
        let watch = Notice.watching(ConnectionID(rawValue: 2), "ann", node.channel, at: watchedSeq)
        let begun = node.commit([], [watch], by: "ann", 2, callerSeq: 5)
        #expect(reports(begun) == ["ann watches"])
        // She asks again, which waits behind that. Her connection gets one end: after that it no longer watches.
        let again = node.commit([], [watch], by: "ann", 2, callerSeq: 5)
        #expect(reports(again) == ["ann watches"])
        // Another node deletes the channel.
        let ended = node.fetch(node.item(10, 14, isDeletion: true)).steps
        let perWatch = ["ann gets 14", "ann stopped"]
        #expect(reports(ended) == perWatch + perWatch + ["deleted"])
        #expect(node.parked == [])
        #expect(node.fetchForNewcomer(node.item(watchedSeq, 14)).steps.isEmpty)
    }

    @Test("I6 I9 a member who isn't attached yet gets the channel's end, on all connections at once; one who has left doesn't")
    func deletedBeforeMembersAreAttached() {
        var node = Node(at: 10)
        for (number, user) in [(2, "ann"), (3, "ben")] as [(Int64, UserID)] { node.connect(number, user, UserStreams(user: 5)) }
        node.join("ann", at: 12, userSeq: 6)
        node.join("ben", at: 11, userSeq: 6)
        #expect(node.parked == [12, 11])
        let watch = Notice.watching(ConnectionID(rawValue: 2), "ann", node.channel, at: 12)
        _ = node.commit([], [watch], by: "ann", 2, callerSeq: 6)
        // The read reports ann's joining, and that ben has left since.
        let left = [StreamItem.Leaving(user: "ann", seq: 12), StreamItem.Leaving(user: "ben", seq: 13)]
        let ended = node.fetch(node.item(10, 14, left: left, isDeletion: true)).steps
        #expect(reports(ended) == ["ann watches", "ann gets 14", "ann stopped", "deleted"])
    }

    @Test("ST-06 I6 a non-member's watch continues if events that are read for it, or for the node, report that they have joined")
    func watchThatAJoiningKeeps() {
        let joined = [StreamItem.Leaving(user: "ann", seq: 12, isBack: true)]
        func watching(at seq: Seq, nodeAt position: Seq) -> Node {
            var node = Node(at: position)
            node.connect(2, "ann", UserStreams(user: 5))
            let watch = Notice.watching(ConnectionID(rawValue: 2), "ann", node.channel, at: seq)
            let begun = node.commit([], [watch], by: "ann", 2, callerSeq: 5)
            #expect(reports(begun) == ["ann watches"])
            return node
        }
        // The watch catches up with the node.
        var ahead = watching(at: 10, nodeAt: 13)
        #expect(reports(ahead.fetchForNewcomer(ahead.item(10, 13, left: joined)).steps) == [])
        // The node catches up with the watch.
        var behind = watching(at: 11, nodeAt: 10)
        #expect(reports(behind.fetch(behind.item(10, 14, left: joined)).steps) == [])
        #expect(behind.parked == [])
        // The node reads the joining while the watch still catches up.
        var both = watching(at: 9, nodeAt: 11)
        let isLeft = both.fetch(both.item(11, 14, left: joined)).steps.contains {
            if case .change(.left("ann", _, 12, true)) = $0 { true } else { false }
        }
        #expect(isLeft)
        #expect(reports(both.fetchForNewcomer(both.item(9, 14, left: joined)).steps) == [])
    }

    @Test("ST-01 I6 a watch that was catching up ends with the leaving: what its connection got as a member's isn't sent again")
    func watchThatALeavingEnds() {
        // Ann is a member, has all up to 110, and watches from 100 on: that is long ago for her node.
        var node = Node(at: 99)
        node.connect(2, "ann", UserStreams(user: 5, channels: [node.channel: 99]))
        node.hand(.received([node.item(99, 110)]))
        let watch = Notice.watching(ConnectionID(rawValue: 2), "ann", node.channel, at: 100)
        _ = node.commit([], [watch], by: "ann", 2, callerSeq: 5)
        // She leaves before the events in between are read.
        let leaving = node.hand(.received([node.item(110, 111, left: [.init(user: "ann", seq: 111)])])).steps
        #expect(leaving.contains { if case .change(.left("ann", _, 111, _)) = $0 { true } else { false } })
        // Nothing more is read for her, even for a watch that was committed before the leaving and arrives here after it.
        #expect(node.fetchForNewcomer(node.item(100, 110)).steps.isEmpty)
        let late = Notice.watching(ConnectionID(rawValue: 2), "ann", node.channel, at: 110)
        let steps = node.commit([], [late], by: "ann", 2, callerSeq: 5)
        #expect(steps.contains { isAnswer($0, to: 2) })
        #expect(!steps.contains { if case .change(.watching) = $0 { true } else { false } })
        // The answer said that her connection watches; it must not count as a watcher forever.
        let ends = steps.lastIndex { if case .change(.stoppedWatching) = $0 { true } else { false } }
        let begins = steps.lastIndex { if case .watches = $0 { true } else { false } }
        #expect((ends ?? -1) > (begins ?? .max))
    }
}
