import RoostAPI
import RoostTestSupport
import Testing

/// Every right to see a part of a channel, on every path, with every way in which it ends (promise 6, for more than messages).
@Suite("Rights, path by path")
struct RightsWalkTests {
    private typealias Cell = RightsWalk.Cell

    /// A server for all of them, which keeps earlier versions of messages. It runs until the process ends.
    private static let server = Task {
        let server = try await TestServer(options: AppOptions(versionSeconds: 3600))
        try await RightsRoom.introduceOthers(on: server)
        return server
    }

    @Test(
        "I9 I10 R23 R33 what a user may no longer see is on no path, and what they may still see is on each",
        arguments: RightsWalk.Way.allCases)
    func ends(way: RightsWalk.Way) async throws {
        let cells = Cell.all(of: way)
        let room = try await RightsRoom.make(way, on: Self.server.value)
        // An operator has every right, and so a cell for each operation that shows one.
        if way.standing == .operator { #expect(try room.unasked(in: cells) == Self.unasked) }
        let before = try await room.answers(in: cells)
        #expect(cells.filter { !Self.shows($0, in: before) } == [], "these were never seen")
        try await room.end()
        let after = try await room.answers(in: cells)
        #expect(cells.filter { Self.shows($0, in: after) && !$0.isKept } == [], "these are seen still")
        #expect(cells.filter { !Self.shows($0, in: after) && $0.isKept } == [], "these should be seen still")
        await room.close()
    }

    /// What isn't walked: the caller's own draft and own permissions, and who is connected and watching, which is no part of a channel's rows.
    private static let unasked: Set<String> = ["draft.get", "permission.explain", "channel.listWatchers"]

    private static func shows(_ cell: Cell, in answers: [Cell: String]) -> Bool {
        RightsWalk.Age.allCases.contains { answers[cell]?.contains(cell.right.mark($0)) == true }
    }

    @Test("R33 every permission that shows a part of a channel is walked, and no right, path or way is left out entirely")
    func isComplete() {
        // A watch isn't marked as reading, and muted and banned members are requested in the list of members.
        let others: [Permission] = [.channelWatch, .memberListMuted, .memberListBanned, .memberSearchBanned]
        let showing = Set(Operations.all.filter { $0.isReadOnly }.map { $0.permission }).intersection(Permission.ofChannel).union(
            others)
        // Signals store nothing, and show the caller nothing.
        let elsewhere: [Permission] = [.messageSend]
        #expect(showing.subtracting(RightsWalk.Right.allCases.flatMap(\.permissions) + elsewhere) == [])
        let cells = RightsWalk.Way.allCases.flatMap { Cell.all(of: $0) }
        #expect(Set(cells.map(\.right)) == Set(RightsWalk.Right.allCases))
        #expect(Set(cells.map(\.path)) == Set(RightsWalk.Path.allCases))
        #expect(Set(cells.map(\.way)) == Set(RightsWalk.Way.allCases))
        #expect(RightsWalk.Right.allCases.allSatisfy { right in cells.contains { $0.right == right && !$0.isKept } })
    }
}
