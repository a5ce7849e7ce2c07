import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import Roost
@testable import RoostClientModel

/// Events name users by their ids, pages and resumes bring what is shown of them, and a client asks for the others.
@Suite("Convergence of names")
struct NameConvergenceTests {
    @Test(
        "Names after events and questions are those of a fresh fetch, and a rename comes with the next page",
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
                try world.send("\(step)", to: "general", as: user)
                try room.connect(seat)
                try room.catchUp(seat, by: .resume)
                try room.goOn(seat)
            case 2:
                let missed = unknown(in: room, seat)
                room.seats[seat].device?.miss(missed)
            default: try world.send("\(step)", to: "general", as: user)
            }
            try room.deliver()
        }
        let missed = unknown(in: room, seat)
        room.seats[seat].device?.miss(missed)
        try room.deliver()
        #expect(room.seats[seat].device?.store.messages["general"]?.isEmpty == false && unknown(in: room, seat) == [])
        let fresh = try world.perform(GetUsers(users: users), as: "ann")
        let device = try #require(room.seats[seat].device)
        for user in fresh {
            guard let held = device.store.users[user.userId] else { continue }
            // Nobody is called what they never were, and who never had another name is called by theirs.
            #expect(held.version <= user.version && (user.version > 1 || held == user.summary))
        }
        room.seats[seat].device?.call(ListMembers(channel: "general", limit: 100))
        try room.deliver()
        let now = room.seats[seat].device?.store.users ?? [:]
        #expect(fresh.map { now[$0.userId] } == fresh.map(\.summary))
    }

    /// The senders whom a device shows by their ids alone.
    private func unknown(in room: Room, _ seat: Int) -> Set<UserID> {
        guard let store = room.seats[seat].device?.store else { return [] }
        let senders = (store.messages["general"] ?? [:]).values.map(\.sender)
        return Set(senders).subtracting(store.users.keys)
    }
}
