import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Others' read and delivered positions.
@Suite("Convergence of receipts")
struct ReaderConvergenceTests {
    @Test(
        "SB-02 X-33 I5 a client that fetched others' read and delivered positions once, and follows the signals, matches a new fetch",
        arguments: Seeds.first(6))
    func followed(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for channel in history.channels {
            let change = UpdateChannel(channel: channel, policy: PolicyChanges(deliveryEvents: true))
            _ = try world.code(change, as: "root", role: .admin)
        }
        let room = Room(world)
        let seats = history.users.map { room.seat($0, withDevice: false) }
        for seat in seats {
            try room.reconnect(seat, by: .resume)
            try room.followReaders(seat)
        }
        var random = SeededGenerator(seed: seed + 5000)
        var (steps, moved) = ([String](), 0)
        for _ in 0..<150 {
            if random.once(in: 2) {
                steps.append(try history.step(in: world))
            } else {
                let (operation, user) = try Self.receipt(in: history, world, &random)
                if try world.code(operation, as: user) == nil { moved += 1 }
                steps.append("\(user) \(operation)")
            }
            // Several moves are sent together.
            if random.once(in: 3) { continue }
            try room.deliver()
            let found = try room.differences(of: seats)
            guard found.isEmpty else {
                Issue.record("seed \(seed): \(found) after \(steps.suffix(8))")
                return
            }
        }
        #expect(moved > 20, "seed \(seed)")
    }

    /// A random user reads, receives, or marks as unread, anywhere in a channel.
    private static func receipt(
        in history: RandomHistory, _ world: CoreWorld, _ random: inout SeededGenerator
    ) throws -> (any Handled, UserID) {
        let (channel, user) = (random.pick(history.channels), random.pick(history.users))
        let heads = try world.rows("SELECT seq FROM channel_heads WHERE channel_id = \(channel)") { $0.int64() }
        let seq = Seq(random.number(0...Int(heads.first ?? 0)))
        return switch random.number(1...5) {
        case 1...2: (MarkDelivered(channel: channel, seq: seq), user)
        case 3...4: (MarkRead(channel: channel, seq: seq), user)
        default: (MarkUnread(channel: channel, seq: seq), user)
        }
    }
}
