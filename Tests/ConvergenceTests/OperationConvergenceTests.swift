import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// For every operation: the state before it, plus its events, is the state after it; and so is a stale state plus the changes.
@Suite("Convergence of each operation")
struct OperationConvergenceTests {
    @Test("I5 every operation is in this test's tables")
    func isComplete() {
        let names = Set(Operations.all.map { $0.name })
        #expect(names.symmetricDifference((RoomOperation.writes + RoomOperation.reads).map(\.name)) == [])
        #expect(Set(RoomOperation.writes.map(\.name)).intersection(RoomOperation.reads.map(\.name)) == [])
        #expect(Operations.all.filter { $0.isReadOnly && RoomOperation.writes.map(\.name).contains($0.name) }.isEmpty)
    }

    /// How a client that missed the operation catches up, and how a fresh one begins.
    private static let ways: [Room.CatchUp] = [.resume, .pages(1), .missedEvents(1), .missedEvents(100)]
    private static let beginnings: [Room.CatchUp] = [.resume, .pages(2)]

    @Test(
        "I5 AM-12 SB-10 live events, and a stale state with the changes, both lead to the state of a fetch",
        arguments: RoomOperation.writes)
    func converges(case tried: RoomOperation) throws {
        let prepared = try PreparedRoom()
        let room = prepared.room
        var names: [Int: String] = [:]
        for user in PreparedRoom.users {
            let live = room.seat(user)
            names[live] = "live"
            try room.reconnect(live, by: .resume)
            try room.followReaders(live)
        }
        var catchingUp: [(seat: Int, way: Room.CatchUp)] = []
        for way in Self.ways {
            for live in PreparedRoom.users.indices {
                let stale = room.seat(like: live, withDevice: way == .resume)
                names[stale] = "stale, \(way.testDescription)"
                try room.disconnect(stale)
                catchingUp.append((stale, way))
            }
        }
        #expect(try room.world.refusal(tried.make(prepared.messages), as: tried.user, role: tried.role, connection: 1) == nil)
        try room.deliver()
        for way in Self.beginnings {
            for user in PreparedRoom.users {
                let fresh = room.seat(user, withDevice: way == .resume)
                names[fresh] = "fresh, \(way.testDescription)"
                catchingUp.append((fresh, way))
            }
        }
        for (seat, way) in catchingUp { try room.reconnect(seat, by: way) }
        let wrong = try room.differences(of: room.seats.indices) {
            tried.changesRulesSilently && $0.hasSuffix(": capabilities")
        }
        #expect(wrong == [], "\(names)")
    }

    @Test("I5 an operation that only reads changes nothing", arguments: RoomOperation.reads)
    func onlyReads(case tried: RoomOperation) throws {
        let prepared = try PreparedRoom()
        let room = prepared.room
        for user in PreparedRoom.users { try room.reconnect(room.seat(user), by: .resume) }
        let before = try room.world.dump()
        #expect(try room.world.refusal(tried.make(prepared.messages), as: tried.user, role: tried.role, connection: 1) == nil)
        #expect(try room.world.dump() == before)
        try room.deliver()
        let wrong = try room.differences(of: room.seats.indices)
        #expect(wrong == [])
    }
}
