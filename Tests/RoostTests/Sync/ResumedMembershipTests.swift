import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: memberships repeated by a resume", .timeLimit(.minutes(5)))
struct ResumedMembershipTests {
    /// The memberships written by a resume, in order.
    private func written(_ user: [Membership], _ channels: [Changes]) async throws -> (written: [Membership], Harness) {
        var client = try await Harness()
        try await client.connect()
        _ = client.take()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1, user), channels: channels, hasMore: false))
        let memberships = client.take().flatMap { output -> [Membership] in
            guard case .store(let writes) = output else { return [] }
            return writes.flatMap { write in if case .rows(let rows, _) = write { rows.memberships ?? [] } else { [Membership]() } }
        }
        return (memberships, client)
    }

    @Test("a membership on both the user's stream and the channel's is written once, after the channel's messages")
    func once() async throws {
        let own = membership(readSeq: 1, readCount: 0, channelSeq: 1, userSeq: 1)
        let mine = message(3, "two", by: Harness.user)
        let (memberships, client) = try await written([own], [fresh(messages: [message(2, "one"), mine], membership: own)])
        #expect(memberships == [own])
        let stored = try #require(try await client.store.read { try $0.membership(of: Harness.channel) })
        #expect(stored.readCount == 1 && stored.channelSeq == 3)
    }

    @Test("one that differs from the channel's is written too, and so is one that has ended, or whose channel isn't on the page")
    func others() async throws {
        let (older, newer) = (
            membership(readSeq: 1, readCount: 0, channelSeq: 1, userSeq: 1),
            membership(readSeq: 2, readCount: 1, channelSeq: 1, userSeq: 2)
        )
        #expect(try await written([newer], [fresh(membership: older)]).written == [newer, older])
        #expect(try await written([older], []).written == [older])
        let left = membership(readSeq: 1, readCount: 0, state: .none, channelSeq: 1, userSeq: 1)
        #expect(try await written([left], [fresh(membership: left)]).written == [left, left])
    }

    @Test("messages up to the floor of a membership that is written after the messages aren't kept")
    func floor() async throws {
        let own = membership(readSeq: 2, readCount: 1, floor: 2, channelSeq: 1, userSeq: 1)
        let (memberships, client) = try await written([own], [fresh(membership: own)])
        #expect(memberships == [own])
        let seqs: [Seq] = try await client.store.read { try $0.values("SELECT seq FROM messages") }
        #expect(seqs == [3])
    }
}
