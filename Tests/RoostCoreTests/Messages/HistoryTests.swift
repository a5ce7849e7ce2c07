import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("History")
struct HistoryTests {
    /// The expected page by definition, from all messages of the channel.
    private func expected(_ operation: ListMessages, of all: [Message], head: Seq) -> MessagePage {
        let limit = operation.limit ?? Limits.historyPage.standard
        var older: [Message] = []
        var newer: [Message] = []
        /// The place of an empty page: between the messages up to here and those after it.
        var place = Seq.max
        if let after = operation.after {
            newer = Array(all.filter { $0.seq > after }.prefix(limit))
            place = after
        } else if let around = operation.around {
            older = Array(all.filter { $0.seq <= around }.suffix((limit + 1) / 2))
            newer = Array(all.filter { $0.seq > around }.prefix(limit / 2))
            place = around
        } else {
            older = Array(all.filter { $0.seq < operation.before ?? .max }.suffix(limit))
            place = (operation.before ?? .max) - 1
        }
        let page = older + newer
        let first = page.first?.seq ?? place + 1
        let last = page.last?.seq ?? place
        return MessagePage(
            messages: page, hasOlder: all.contains { $0.seq < first }, hasNewer: all.contains { $0.seq > last }, seq: head)
    }

    @Test(
        "R22 newer messages exist even if they count for nobody or were sent at the same time, but not if they were deleted for good",
        arguments: [0, 1000])
    func newer(millisecondsApart: Int64) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        func send(_ id: ClientID, isSilent: Bool = false) throws -> Message {
            world.now = Timestamp(milliseconds: world.now.milliseconds + millisecondsApart)
            return try world.perform(SendMessage(channel: "general", clientId: id, text: "x", isSilent: isSilent), as: "ann")
        }
        func hasNewer(than message: Message) throws -> Bool {
            try world.perform(ListMessages(channel: "general", before: message.seq + 1, limit: 1), as: "ann").hasNewer
        }
        let first = try send("1")
        #expect(try !hasNewer(than: first))
        let silent = try send("2", isSilent: true)
        #expect(try hasNewer(than: first) && !hasNewer(than: silent))
        let last = try send("3")
        #expect(try hasNewer(than: first) && hasNewer(than: silent) && !hasNewer(than: last))
        try world.perform(PurgeMessage(channel: "general", message: last.messageId), as: "ann")
        #expect(try hasNewer(than: first) && !hasNewer(than: silent))
        try world.perform(PurgeMessage(channel: "general", message: silent.messageId), as: "ann")
        #expect(try !hasNewer(than: first))
    }

    @Test("R22 pages before, after and around every place match the definition", arguments: Seeds.first(3))
    func pages(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world, users: ["ann", "bob"])
        for _ in 0..<60 { try history.step(in: world) }
        for channel in history.channels {
            let head = try #require(
                try world.rows("SELECT seq FROM channel_heads WHERE channel_id = \(channel)") { $0.int64() }.first)
            let all = try world.perform(ListMessages(channel: channel, limit: 100), as: "root", role: .admin).messages
            var operations: [ListMessages] = []
            for limit in [1, 2, 3, 5, 100] {
                operations.append(ListMessages(channel: channel, limit: limit))
                for place in Array(0...(head + 2)) + [1_000_000, Limits.seqMax] {
                    operations.append(ListMessages(channel: channel, before: place, limit: limit))
                    operations.append(ListMessages(channel: channel, after: place, limit: limit))
                    operations.append(ListMessages(channel: channel, around: place, limit: limit))
                }
            }
            for operation in operations {
                var page = try world.perform(operation, as: "root", role: .admin)
                // Root has no profile to send.
                let named = Set((page.users ?? []).map(\.userId))
                let senders = Set(page.messages.map(\.sender) + page.messages.flatMap { $0.mentionees?.mentionedUsers ?? [] })
                    .subtracting(["root"])
                page.users = nil
                guard page == expected(operation, of: all, head: head), named == senders else {
                    #expect(named == senders, "seed \(seed): \(operation)")
                    #expect(page == expected(operation, of: all, head: head), "seed \(seed): \(operation)")
                    return
                }
            }
        }
    }

    @Test(
        "SB-14 SB-26 I10 a message by its id is the one that pages show the user, and the page around it contains the page around its seq; others aren't found",
        arguments: Seeds.first(3))
    func byID(seed: UInt64) throws {
        let world = try CoreWorld()
        let users: [UserID] = ["ann", "bob", "cat"]
        var history = try RandomHistory(seed: seed, in: world, users: users)
        for _ in 0..<300 { try history.step(in: world) }
        var (found, concealed) = (0, 0)
        for channel in history.channels {
            // Admins see no conversations.
            let seen = try? world.perform(ListMessages(channel: channel, limit: 100), as: "root", role: .admin).messages
            guard let everything = seen else { continue }
            if let message = everything.first {
                // In a deleted channel no message can be deleted.
                _ = try? world.perform(PurgeMessage(channel: channel, message: message.messageId), as: "root", role: .admin)
            }
            for user in users {
                let page = try? world.perform(ListMessages(channel: channel, limit: 100), as: user)
                for message in everything {
                    let (get, around) = (
                        GetMessage(channel: channel, message: message.messageId),
                        ListMessages(channel: channel, aroundMessage: message.messageId, limit: 4)
                    )
                    if let shown = page?.messages.first(where: { $0.messageId == message.messageId }) {
                        found += 1
                        #expect(try world.perform(get, as: user) == shown, "seed \(seed)")
                        let same = ListMessages(channel: channel, around: message.seq, limit: 4)
                        let (bySeq, byID) = (
                            try world.perform(same, as: user).messages, try world.perform(around, as: user).messages
                        )
                        // It continues to the end of a time.
                        let more = byID.filter { !bySeq.contains($0) }
                        #expect(bySeq.allSatisfy(byID.contains), "seed \(seed)")
                        #expect(
                            more.allSatisfy { [bySeq.first, bySeq.last].map { $0?.createdAt }.contains($0.createdAt) },
                            "seed \(seed)")
                    } else {
                        concealed += 1
                        let refusals = try [world.refusal(get, as: user), world.refusal(around, as: user)]
                        let unknown = MessageID(rawValue: 1)
                        let others = try [
                            world.refusal(GetMessage(channel: channel, message: unknown), as: user),
                            world.refusal(ListMessages(channel: channel, aroundMessage: unknown), as: user),
                        ]
                        #expect(refusals == others && !refusals.contains(nil), "seed \(seed)")
                    }
                }
            }
        }
        #expect(found > 10 && concealed > 2, "seed \(seed)")
    }

    @Test("SB-59 a deleted message is found by its id, without its content, only in its own channel")
    func deleted() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.channel("other", owner: "ann")
        let sent = try world.send("secret", to: "general", as: "ann")
        let deleted = try world.perform(DeleteMessage(channel: "general", message: sent.messageId), as: "ann")
        #expect(try world.perform(GetMessage(channel: "general", message: sent.messageId), as: "ann") == deleted)
        #expect(deleted.text == "")
        let refusal = RoostError(.notFound, "There is no such message.", field: "message")
        #expect(try world.refusal(GetMessage(channel: "other", message: sent.messageId), as: "ann") == refusal)
    }

    @Test("R22 a call takes only one of before, after, around and aroundMessage; a place must be possible in a stream")
    func refuses() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let operations = [
            ListMessages(channel: "general", before: 1, after: 1), ListMessages(channel: "general", after: 1, around: 1),
            ListMessages(channel: "general", around: 1, aroundMessage: MessageID(rawValue: 1)),
            ListMessages(channel: "general", before: -1), ListMessages(channel: "general", after: .min),
            ListMessages(channel: "general", around: -1), ListMessages(channel: "general", before: .max),
            ListMessages(channel: "general", after: .max), ListMessages(channel: "general", around: .max),
        ]
        let codes = try operations.map { try world.code($0, as: "ann") }
        #expect(codes == Array(repeating: .invalidArgument, count: operations.count))
        // The refusal names a field that was given.
        let (id, time) = (MessageID(rawValue: 1), world.now)
        let others = [
            ListMessages(channel: "general", after: 1, around: 1), ListMessages(channel: "general", around: 1, aroundMessage: id),
            ListMessages(channel: "general", aroundMessage: id, beforeMessage: id),
            ListMessages(channel: "general", beforeMessage: id, afterMessage: id),
            ListMessages(channel: "general", afterMessage: id, beforeTime: time),
            ListMessages(channel: "general", beforeTime: time, afterTime: time),
            ListMessages(channel: "general", afterTime: time, aroundTime: time),
        ]
        let fields = try others.map { try world.refusal($0, as: "ann")?.field }
        #expect(
            fields == ["after", "around", "aroundMessage", "beforeMessage", "afterMessage", "beforeTime", "afterTime"])
    }

    @Test("I18 pages of large messages end early, and together still hold everything", arguments: [true, false])
    func largeMessages(forwards: Bool) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let data = String(repeating: "語", count: Limits.messageDataLength)
        for number in 0..<60 {
            try world.perform(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "x", data: data), as: "ann")
        }
        var seqs: [Seq] = []
        var place: Seq = forwards ? 0 : Limits.seqMax
        var sizes: [Int] = []
        var hasMore = true
        while hasMore, sizes.count < 61 {
            let operation =
                forwards
                ? ListMessages(channel: "general", after: place, limit: 100)
                : ListMessages(channel: "general", before: place, limit: 100)
            let page = try world.perform(operation, as: "ann")
            seqs = forwards ? seqs + page.messages.map(\.seq) : page.messages.map(\.seq) + seqs
            sizes.append(page.messages.count)
            place = (forwards ? seqs.last : seqs.first) ?? place
            hasMore = forwards ? page.hasNewer : page.hasOlder
        }
        #expect(seqs == Array(2...61))
        #expect((sizes.max() ?? 0) < 20)
    }
}
