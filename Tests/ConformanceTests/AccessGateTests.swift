import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// The revoked tokens that a server keeps checking in the database.
@Suite struct AccessGateTests {
    /// A database that others use as well, and whose clock isn't this machine's.
    private struct Shared: Database {
        let own: any Database
        let offsetMilliseconds: Int64

        var laneCount: Int { own.laneCount }
        var readerCount: Int { own.readerCount }
        func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T { try own.write(lane: lane, body) }
        func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try own.read(body) }
        func now() -> Timestamp { Timestamp(milliseconds: Timestamp.now.milliseconds + offsetMilliseconds) }
    }

    /// Returns whether a gate looks in the database for a caller with this token.
    private func isLookedUp(_ token: String, by gate: AccessGate, in database: Shared) throws -> Bool {
        try isLookedUp(caller: Caller(user: "ann", token: TokenIdentity(user: "ann", id: token)), by: gate, in: database)
    }

    private func isLookedUp(caller: Caller, by gate: AccessGate, in database: Shared) throws -> Bool {
        try database.read { transaction in
            let counting = CountingTransaction(transaction)
            try gate.requireAccess(Context(transaction: counting, caller: caller, now: database.now(), ids: IDGenerator()))
            return counting.statementCount > 0
        }
    }

    @Test(
        "revoked tokens are forgotten a day after they expire by the database's clock, whatever the node's says",
        arguments: [-2, 0, 2])
    func prunes(_ hours: Int64) throws {
        let own = try TestDatabase()
        let database = Shared(own: try own.open(), offsetMilliseconds: hours * 3_600_000)
        let gate = try AccessGate(database, tokensKeptMin: 2)
        func end(inMinutes minutes: Int64) -> Timestamp { Timestamp(milliseconds: database.now().milliseconds + minutes * 60_000) }
        gate.learn([
            .revoked(token: "over", until: end(inMinutes: -24 * 60 - 2)),
            .revoked(token: "expired", until: end(inMinutes: -23 * 60)),
            .revoked(token: "newest", until: end(inMinutes: 60)),
        ])
        #expect(try ["over", "expired", "newest"].map { try isLookedUp($0, by: gate, in: database) } == [false, true, true])
    }

    @Test("only as many expired tokens are remembered as the database keeps, those that expired last, and every signed-out device")
    func expiredMost() throws {
        let own = try TestDatabase()
        let database = Shared(own: try own.open(), offsetMilliseconds: 0)
        let gate = try AccessGate(database, tokensKeptMin: 3, expiredTokensMax: 1)
        func end(inMinutes minutes: Int64) -> Timestamp { Timestamp(milliseconds: database.now().milliseconds + minutes * 60_000) }
        gate.learn([
            .signedOut("ann", device: "phone", upTo: 1),
            .revoked(token: "last", until: end(inMinutes: -20)),
            .revoked(token: "first", until: end(inMinutes: -30)),
            .revoked(token: "valid", until: end(inMinutes: 60)),
        ])
        #expect(try ["first", "last", "valid"].map { try isLookedUp($0, by: gate, in: database) } == [false, true, true])
        let device = Caller(user: "ann", device: DeviceIdentity(id: "phone", signIn: 1))
        #expect(try isLookedUp(caller: device, by: gate, in: database))
    }
}
