public import RoostAPI

extension ListMessages: Handled {
    public func handle(in context: inout Context) throws -> MessagePage {
        var page = try askedPage(in: &context)
        page.users = try context.summaries(for: page.messages)
        return page
    }

    private func askedPage(in context: inout Context) throws -> MessagePage {
        let access = try context.require(.historyRead, in: channel)
        let channel = access.channelId
        let limit = try Limits.page(limit, Limits.historyPage)
        let around = try around ?? aroundMessage.map { try context.message($0, in: access, field: "aroundMessage").seq }
        let transaction = context.transaction
        let seq = access.counters.seq
        let floor = access.historyFloor
        if let after {
            let (messages, hasNewer) = try transaction.messages(after: max(after, floor), in: channel, limit: limit)
            let first = messages.first?.seq ?? after + 1
            let hasOlder = try !transaction.messages(before: first, above: floor, in: channel, limit: 1).messages.isEmpty
            return MessagePage(messages: messages, hasOlder: hasOlder, hasNewer: hasNewer, seq: seq)
        }
        if let around {
            // The two together are one page.
            let sizeBytesMax = Limits.pageContentBytes / 2
            let (older, hasOlder) = try transaction.messages(
                before: around.advanced(by: 1), above: floor, in: channel, limit: (limit + 1) / 2, sizeBytesMax: sizeBytesMax)
            let (newer, hasNewer) = try transaction.messages(
                after: max(around, floor), in: channel, limit: limit / 2, sizeBytesMax: sizeBytesMax)
            return MessagePage(messages: older + newer, hasOlder: hasOlder, hasNewer: hasNewer, seq: seq)
        }
        let (messages, hasOlder) = try transaction.messages(before: before ?? .max, above: floor, in: channel, limit: limit)
        let last = messages.last?.seq ?? (before ?? 0) - 1
        let hasNewer = try before != nil && !transaction.messages(after: max(floor, last), in: channel, limit: 1).messages.isEmpty
        return MessagePage(messages: messages, hasOlder: hasOlder, hasNewer: hasNewer, seq: seq)
    }
}
