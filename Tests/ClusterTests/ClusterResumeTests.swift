#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// A client that reconnects to another node than the one that took the writes.
    @Suite struct ClusterResumeTests {
        @Test("R39 I5 a resume in parts on another node than the one that took the writes gives the state of a fetch")
        func parts() async throws {
            try await TestCluster.run(3) { cluster in
                for channel in ["a", "b", "c", "d", "e"] as [ChannelID] {
                    try await cluster.makeChannel(channel, owner: "ann", members: ["bob"])
                }
                let ann = try await cluster.socket("ann", at: 0)
                let first = try await ann.send("c", "first")
                var view = try await Self.fetch(at: 1, of: cluster)
                #expect(Set(view.channels.keys) == ["a", "b", "c", "d", "e"])

                // Everything that can happen to a channel meanwhile: nothing, messages, an edit, the end of the membership, and its beginning.
                for number in 1...3 { try await ann.send("a", "\(number)") }
                try await ann.call(EditMessage(channel: "c", message: first.messageId, text: "edited"))
                try await ann.call(RemoveMembers(channel: "e", users: ["bob"]))
                try await ann.call(CreateChannel(channel: "ä", users: ["bob"]))
                try await ann.send("ä", "new")

                let bob = try await cluster.socket("bob", at: 2)
                for (from, before) in [("d", nil), (nil, "b"), ("b", "d")] as [(ChannelID?, ChannelID?)] {
                    try await Self.resume(&view, over: bob, from: from, before: before)
                }
                #expect(view.faults.map(\.text) == [])
                let fresh = try await Self.fetch(at: 1, of: cluster)
                #expect(Set(view.channels.keys) == ["a", "b", "c", "d", "ä"])
                #expect(view.position == fresh.position && view.positions == fresh.positions)
                #expect(view.channels.mapValues(\.messages) == fresh.channels.mapValues(\.messages))
                #expect(view.channels.mapValues(\.counters) == fresh.channels.mapValues(\.counters))
                #expect(Self.unread(view) == Self.unread(fresh))
            }
        }

        /// The state of a fresh client of bob's.
        private static func fetch(at place: Int, of cluster: TestCluster) async throws -> StrictView {
            var view = StrictView(user: "bob")
            try await resume(&view, over: try await cluster.socket("bob", at: place), from: nil, before: nil)
            return view
        }

        /// Brings a view up to the channels of a part of the ids.
        private static func resume(
            _ view: inout StrictView, over socket: RawSocket, from: ChannelID?, before: ChannelID?
        ) async throws {
            var hasMore = true
            while hasMore {
                var operation = Resume(after: view.position, channels: [:], from: from, before: before)
                operation.channels = view.positions.filter { operation.covers($0.key) }
                let answer = try await socket.call(operation)
                view.apply(answer)
                hasMore = answer.hasMore
            }
        }

        private static func unread(_ view: StrictView) -> [ChannelID: Int] {
            view.channels.mapValues { Unread.count(in: $0.counters, for: $0.membership) }
        }
    }
}
#endif
