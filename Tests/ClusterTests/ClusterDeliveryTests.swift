#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Users on different nodes talk with each other as if there were one node.
    @Suite struct ClusterDeliveryTests {
        private static let general: ChannelID = "general"

        @Test("I3 I4 messages sent at once through three nodes reach every member once, in one order without a gap")
        func oneOrder() async throws {
            try await TestCluster.run(3) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob", "cat"])
                let users: [UserID] = ["ann", "bob", "cat"]
                var sockets: [RawSocket] = []
                for (place, user) in users.enumerated() { sockets.append(try await cluster.socket(user, at: place)) }
                let seqs = try await withThrowingTaskGroup(of: [Seq].self) { group in
                    for (socket, user) in zip(sockets, users) {
                        group.addTask {
                            for number in 1...20 {
                                _ = try await socket.post(
                                    SendMessage(channel: Self.general, clientId: ClientID("\(user)-\(number)"), text: "hi"))
                            }
                            return try await socket.messages(60, of: Self.general).map(\.seq)
                        }
                    }
                    var all: [[Seq]] = []
                    for try await seqs in group { all.append(seqs) }
                    return all
                }
                // The channel's creation took the first seq.
                #expect(seqs == Array(repeating: Array(2...61), count: 3))
            }
        }

        @Test("I6 I9 joined over HTTP on another node, a socket gets the channel's events; left there, nothing newer")
        func joinsElsewhere() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["cat"])
                let bob = try await cluster.socket("bob", at: 0)
                let cat = try await cluster.socket("cat", at: 0)
                let ann = try await cluster.socket("ann", at: 1)
                #expect(try await cluster.servers[1].post("/v1/channels/general/join", as: "bob") == 200)
                let joined = try await ann.send(Self.general, "joined")
                let membership = try await bob.event(of: .user("bob")).rows.memberships?.first
                #expect(membership?.joinedSeq == joined.seq - 1)
                #expect(try await bob.messages(1, of: Self.general) == [joined])

                #expect(try await cluster.servers[1].post("/v1/channels/general/leave", as: "bob") == 200)
                let left = try await ann.send(Self.general, "left")
                #expect(try await cat.messages(2, of: Self.general) == [joined, left])
                // Cat's node has it, and would have sent it to bob by now.
                #expect(try await bob.event(of: .user("bob")).rows.memberships?.first?.state == MembershipState.none)
                #expect(try await bob.eventsSoFar() == [])
            }
        }

        @Test("I6 members connected elsewhere get a new channel immediately, and its end reaches them")
        func createsAndDeletes() async throws {
            try await TestCluster.run(2) { cluster in
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                let view = try await ann.call(CreateChannel(channel: Self.general, users: ["bob"]))
                #expect(try await bob.event(of: .user("bob")).rows.channel == view.channel)
                let first = try await ann.send(Self.general, "1")
                #expect(try await bob.messages(1, of: Self.general) == [first])
                let second = try await bob.send(Self.general, "2")
                #expect(try await ann.messages(2, of: Self.general) == [first, second])

                try await ann.call(DeleteChannel(channel: Self.general))
                // It follows bob's own message.
                #expect(try await bob.messages(1, of: Self.general) == [second])
                let end = try await bob.event(of: .channel(Self.general))
                #expect(end.rows.channel?.deletedAt != nil)
                let refusal = await #expect(throws: RoostError.self) { try await bob.send(Self.general, "3") }
                #expect(refusal?.code == .notPermitted)
            }
        }

        @Test("SB-26 SB-14 I10 a message that a member hid stays hidden from their sockets on every node when it changes")
        func staysHidden() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob", "cat"])
                let ann = try await cluster.socket("ann", at: 0)
                let old = try await ann.send(Self.general, "old")
                let phone = try await cluster.socket("bob", at: 0)
                let laptop = try await cluster.socket("bob", at: 1)
                let cat = try await cluster.socket("cat", at: 1)
                let hidden = try await phone.call(HideChannel(channel: Self.general, hidePreviousMessages: true))
                #expect(hidden.historyFloor == old.seq)
                // Once a client has the event of the hiding, the floor is in effect.
                let received = try await laptop.event(of: .user("bob")).rows.memberships?.first
                #expect(received?.hiddenState == hidden.hiddenState && received?.historyFloor == old.seq)
                let tablet = try await cluster.socket("bob", at: 1)

                let edited = try await ann.call(EditMessage(channel: Self.general, message: old.messageId, text: "edited"))
                let new = try await ann.send(Self.general, "new")
                for socket in [phone, laptop, tablet, cat] {
                    // A node that has read them from the database may have made one event of both.
                    var (messages, position): ([Message], Seq) = ([], edited.changeSeq - 1)
                    while position < new.seq {
                        let event = try await socket.event(of: .channel(Self.general))
                        #expect((event.after ?? event.seq - 1) <= position && event.seq > position)
                        messages += event.rows.messages ?? []
                        position = event.seq
                    }
                    #expect(position == new.seq && messages == (socket === cat ? [edited, new] : [new]))
                }
            }
        }

        @Test("ST-03 of two channels with a common name, made at once on two nodes, one is made and the other refused")
        func sameName() async throws {
            try await TestCluster.run(2) { cluster in
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                for number in 0..<25 {
                    async let plain = ann.code(CreateChannel(channel: ChannelID("n\(number)"), type: .messaging))
                    async let typed = bob.code(CreateChannel(channel: ChannelID("messaging:n\(number)"), type: .messaging))
                    #expect(try await Set([plain, typed]) == [nil, .alreadyExists], "\(number)")
                }
            }
        }

        @Test("I4 of two nodes that make the same channel at once, one succeeds and the other refuses")
        func createsOnce() async throws {
            try await TestCluster.run(2) { cluster in
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                for number in 1...10 {
                    let create = CreateChannel(channel: ChannelID("channel-\(number)"))
                    async let first = Self.outcome { try await ann.call(create) }
                    async let second = Self.outcome { try await bob.call(create) }
                    #expect(Set([await first, await second]) == [nil, .alreadyExists])
                }
            }
        }

        private static func outcome(_ call: () async throws -> some Sendable) async -> RoostError.Code? {
            do {
                _ = try await call()
                return nil
            } catch {
                return (error as? RoostError)?.code ?? .internalError
            }
        }

        @Test("I4 one client id sent at once through two nodes is stored once, and both get the same answer")
        func storesOnce() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann")
                let here = try await cluster.socket("ann", at: 0)
                let there = try await cluster.socket("ann", at: 1)
                var answered: [Message] = []
                for number in 1...20 {
                    async let first = here.send(Self.general, "\(number)")
                    async let second = there.send(Self.general, "\(number)")
                    let both = [try await first, try await second]
                    #expect(both[0] == both[1])
                    answered.append(both[0])
                }
                #expect(try await here.call(ListMessages(channel: Self.general, limit: 100)).messages == answered)
                // Each of them once, on both nodes.
                #expect(try await here.messages(20, of: Self.general) == answered)
                #expect(try await there.messages(20, of: Self.general) == answered)
                #expect(try await here.eventsSoFar() == [])
                #expect(try await there.eventsSoFar() == [])
            }
        }

        @Test("I1 every node reads what one node has acknowledged")
        func readsWhatWasAcknowledged() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob"])
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                for number in 1...20 {
                    let sent = try await ann.send(Self.general, "\(number)")
                    #expect(try await bob.call(ListMessages(channel: Self.general, limit: 1)).messages == [sent])
                }
            }
        }
    }
}

extension RawSocket {
    /// The refusal of an operation; nil if it succeeds.
    fileprivate func code(_ operation: some RoostAPI.Operation) async throws -> RoostError.Code? {
        do {
            try await call(operation)
            return nil
        } catch let error as RoostError {
            return error.code
        }
    }
}
#endif
