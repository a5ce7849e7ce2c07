import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("A long random run of messages")
struct MessageRunTests {
    /// The rules alone, with a clock that sometimes goes back.
    private struct Rules: OperationPerformer {
        let world: CoreWorld

        nonisolated(nonsending) func perform<O: Handled>(
            _ operation: O, as user: UserID, role: AppRole
        ) async throws -> O.Response {
            world.advance(milliseconds: world.now.milliseconds % 19 == 0 ? -500 : world.now.milliseconds % 7 + 1)
            return try world.perform(operation, as: user, role: role)
        }
    }

    /// On PostgreSQL every query takes several times as long: there the steps are a quarter.
    private static let seeds = Seeds.first(TestDatabase.Engine.chosen == .sqlite ? 4 : 1)

    @Test(
        "AM-43 AM-44 MN-16 R35 I7 after each of 20,000 steps unread counts, mentions, counters and the newest page match a recount",
        arguments: seeds)
    func recount(seed: UInt64) async throws {
        let world = try CoreWorld()
        world.options.undeletionSeconds = 3600
        for user in MessageRun.users { try world.user(user) }
        let rules = Rules(world: world)
        var run = try await MessageRun(seed: seed, undeletes: true, by: rules)
        var steps: [MessageRun.Step] = []
        for number in 1...5000 {
            let step = try await run.step(by: rules)
            steps.append(step)
            let members = MessageRun.users.filter { user in step.channels.contains { run.recount.isMember(user, of: $0) } }
            let reader = run.random.pick(members.isEmpty || run.random.once(in: 5) ? MessageRun.users : members)
            var found = try differences(from: run.recount, in: step.channels, of: world, askedMoreBy: [step.user, reader])
            if number.isMultiple(of: 500) {
                for user in MessageRun.users {
                    found += try differences(from: run.recount, in: run.channels, of: world, askedMoreBy: [user])
                }
                found += try listDifferences(from: run.recount, run.channels, of: world)
            }
            if let wrong = step.wrongAnswer { found.append("the answer \(wrong)") }
            guard found.isEmpty else {
                let last = steps.filter { !$0.channels.allSatisfy { !step.channels.contains($0) } }.suffix(12).map(\.text)
                Issue.record("seed \(seed), step \(number): \(found) after \(last.joined(separator: "\n"))")
                return
            }
        }
        // A run with only refusals would prove nothing.
        let rare = run.acceptedCounts.filter { $0.value < 20 }
        #expect(rare == [:] && run.acceptedCounts.count == 22)
    }

    /// Where the server differs from a recount in some channels. Some users also ask for everything shown of them,
    /// and the last one for the newest messages.
    private func differences(
        from recount: MessageRecount, in channels: [ChannelID], of world: CoreWorld, askedMoreBy readers: [UserID?]
    ) throws -> [String] {
        var found: [String] = []
        for user in MessageRun.users {
            for channel in channels {
                let unread = recount.unread(of: user, in: channel)
                let counted = try unlessRefused(GetUnread(channel: channel), as: user, in: world)
                if counted != unread {
                    found.append("unread of \(user) in \(channel): \(counted as Any) instead of \(unread as Any)")
                }
                guard readers.contains(user) else { continue }
                let standing = recount.standing(of: user, in: channel)
                let shown = try unlessRefused(GetChannel(channel: channel), as: user, in: world)
                    .flatMap(MessageRecount.Standing.init(showing:))
                if shown != standing { found.append("\(user) in \(channel): \(shown as Any) instead of \(standing as Any)") }
                guard user == readers.last else { continue }
                let page = page(of: user, in: channel, by: recount)
                var listed = try unlessRefused(ListMessages(channel: channel, limit: Self.pageSize), as: user, in: world)
                listed?.users = nil
                let messages = listed?.messages.map(\.comparable) ?? []
                listed?.messages = messages
                if listed != page { found.append("page of \(user) in \(channel): \(listed as Any) instead of \(page as Any)") }
            }
            let total = try world.perform(GetTotalUnread(), as: user)
            if total != recount.total(of: user) {
                found.append("total of \(user): \(total) instead of \(recount.total(of: user))")
            }
        }
        return found
    }

    /// Where the lists of channels differ from a recount.
    private func listDifferences(
        from recount: MessageRecount, _ channels: [ChannelID], of world: CoreWorld
    ) throws -> [String] {
        try MessageRun.users.flatMap { user in
            let views = try world.perform(QueryChannels(hidden: .all, limit: 100), as: user).items
            let listed = Dictionary(uniqueKeysWithValues: views.map { ($0.channel.channelId, $0) })
            return channels.compactMap { channel in
                let standing = recount.standing(of: user, in: channel)
                let shown = listed[channel].flatMap(MessageRecount.Standing.init(showing:))
                return shown == standing ? nil : "list of \(user), \(channel): \(shown as Any) instead of \(standing as Any)"
            }
        }
    }

    private static let pageSize = 10

    private func page(of user: UserID, in channel: ChannelID, by recount: MessageRecount) -> MessagePage? {
        recount.messages(of: channel, visibleTo: user).map { visible in
            MessagePage(
                messages: visible.suffix(Self.pageSize), hasOlder: visible.count > Self.pageSize, hasNewer: false,
                seq: recount.seq(of: channel))
        }
    }

    /// The answer; nil for non-members and users who may not know of the channel.
    private func unlessRefused<O: Handled>(_ operation: O, as user: UserID, in world: CoreWorld) throws -> O.Response? {
        do {
            return try world.perform(operation, as: user)
        } catch let error as RoostError where [.notMember, .notFound].contains(error.code) {
            return nil
        }
    }
}
