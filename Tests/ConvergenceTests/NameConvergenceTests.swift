import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import Roost
@testable import RoostClientModel

/// Events name users by their ids, pages and resumes bring their names and pictures, and a client asks about those it shows.
@Suite("Convergence of names")
struct NameConvergenceTests {
    @Test(
        "SB-61 SB-62 after each request the shown names are those of a fresh fetch, even of users renamed during an absence",
        arguments: Seeds.first(6))
    func names(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let world = try CoreWorld()
        let users = (0..<12).map { UserID("u\(10 + $0)") }
        for user in users { try world.user(user, displayName: Bool.random(using: &random) ? "Name of \(user)" : nil) }
        try world.channel("general", owner: "ann", members: users)
        let room = Room(world)
        let seat = room.seat("ann")
        try room.connect(seat)
        try room.catchUp(seat, by: .resume)
        try room.goOn(seat)
        for step in 0..<60 {
            let user = users.randomElement(using: &random) ?? "ann"
            switch Int.random(in: 0..<8, using: &random) {
            case 0: _ = try world.perform(UpdateMe(displayName: "Name \(step)"), as: user)
            case 1:
                try room.disconnect(seat)
                if Bool.random(using: &random) {
                    try world.send("\(step)", to: "general", as: user)
                } else {
                    _ = try world.perform(UpdateMe(displayName: "Name \(step)"), as: user)
                }
                try room.connect(seat)
                try room.catchUp(seat, by: .resume)
                try room.goOn(seat)
                show(room, seat)
                try room.deliver()
                try isFresh(room, seat, world)
            case 2: show(room, seat)
            default: try world.send("\(step)", to: "general", as: user)
            }
            try room.deliver()
        }
        show(room, seat)
        try room.deliver()
        let (people, known) = (shown(in: room, seat), try device(in: room, seat).store.users.keys)
        #expect(!people.isEmpty && people.isSubset(of: known))
        room.seats[seat].device?.call(ListMembers(channel: "general", limit: 100))
        try room.deliver()
        let fresh = try world.perform(GetUsers(users: users), as: "ann")
        let now = try device(in: room, seat).store.users
        #expect(fresh.map { now[$0.userId] } == fresh.map(\.summary))
    }

    private func device(in room: Room, _ seat: Int) throws -> Device { try #require(room.seats[seat].device) }

    /// Checks that a device shows the senders' current names.
    private func isFresh(_ room: Room, _ seat: Int, _ world: CoreWorld) throws {
        let users = shown(in: room, seat).sorted()
        let fresh = try world.perform(GetUsers(users: users), as: "ann")
        let held = try device(in: room, seat).store.users
        #expect(fresh.map { held[$0.userId] } == fresh.map(\.summary))
    }

    private func show(_ room: Room, _ seat: Int) {
        let users = shown(in: room, seat)
        room.seats[seat].device?.show(users)
    }

    /// The senders whom a device shows.
    private func shown(in room: Room, _ seat: Int) -> Set<UserID> {
        guard let store = room.seats[seat].device?.store else { return [] }
        return Set((store.messages["general"] ?? [:]).values.map(\.sender))
    }
}
