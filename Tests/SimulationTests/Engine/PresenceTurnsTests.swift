import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// The order of operations while presence is collected for one of them, in isolation.
@Suite("Presence turns")
struct PresenceTurnsTests {
    private var turns = PresenceTurns()

    /// An operation of a connection in a channel.
    private func job(
        _ name: String, in channel: ChannelID = "general", on connection: Int64 = 1, asksForPresence: Bool = false
    ) -> Job {
        Job(
            .init(operation: name, scope: .channel(channel), requiredPresence: asksForPresence ? .channel(channel) : .none),
            caller: Caller(user: "ann"), run: { _ in [] },
            destination: .socket(SocketID(shard: 0, connection: ConnectionID(rawValue: connection)), call: 1))
    }

    /// Returns which of some operations, which arrive one after another, have to wait.
    private mutating func waiting(_ jobs: [Job]) -> [String] {
        var names: [String] = []
        for job in jobs where turns.mustWait(job) { names.append(job.operation) }
        return names
    }

    /// Takes operations of a turn until none waits, or one asks for presence.
    private mutating func continued(_ turn: Job.Turn) -> [String] {
        var names: [String] = []
        while let next = turns.next(in: turn) {
            names.append(next.operation)
            if next.presenceChannel != nil { break }
        }
        return names
    }

    @Test("I3 operations behind one that waits for presence wait for it, and continue in the order of arrival")
    mutating func order() throws {
        let watch = job("watch", asksForPresence: true)
        let turn = try #require(watch.turn)
        let behind = waiting([job("first"), watch, job("second"), job("third")])
        #expect(behind == ["second", "third"])
        let after = continued(turn)
        #expect(after == ["second", "third"])
        // The turn has ended.
        let later = waiting([job("fourth")])
        #expect(later == [])
    }

    @Test("I3 a later one that waits for presence itself holds up those behind it, until its own is collected")
    mutating func again() throws {
        let watch = job("watch", asksForPresence: true)
        let turn = try #require(watch.turn)
        let behind = waiting([watch, job("first"), job("again", asksForPresence: true), job("second")])
        #expect(behind == ["first", "again", "second"])
        let after = continued(turn)
        #expect(after == ["first", "again"])
        let meanwhile = waiting([job("third")])
        #expect(meanwhile == ["third"])
        let rest = continued(turn)
        #expect(rest == ["second", "third"])
    }

    @Test("operations in other channels, of other connections and over HTTP don't wait")
    mutating func others() {
        let request = Job(
            .init(operation: "request", scope: .channel("general")), caller: Caller(user: "ann"), run: { _ in [] },
            destination: .waiting { _ in })
        let behind = waiting([
            job("watch", asksForPresence: true), job("elsewhere", in: "other"), job("phone", on: 2), request, job("send"),
        ])
        #expect(behind == ["send"])
    }
}
