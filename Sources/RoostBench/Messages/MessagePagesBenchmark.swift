import Foundation
import RoostAPI
import RoostCore

/// Measures pages of a channel of 1,000,000 messages by place, time, id and filter, and a page of 10,000 own mentions. The floor of each is the
/// newest page, or a page by seq, in the same run.
struct MessagePagesBenchmark: Benchmark {
    static let name = "message pages"
    private let author = UserID("author")
    private let reader = UserID("reader")
    private let channel = ChannelID("history")
    private let mentioning = ChannelID("mentions")
    private let pageSize = 50
    /// One message in this many has the custom type that is queried.
    private let rarity = 1000

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let count = scale.pick(1_000_000, quick: 100_000, smoke: 2000)
        let mentionCount = scale.pick(10_000, quick: 2000, smoke: 50)
        var places: [(id: MessageID, time: Timestamp)] = []
        try Seed.fill(directory) { seed in
            try seed.addUsers([author, reader])
            try seed.forEach([channel, mentioning]) { try $0.perform(CreateChannel(channel: $1, users: [reader]), as: author) }
            try seed.forEach(0..<count) { batch, number in
                var content = MessageContent(text: SampleText.message)
                if number.isMultiple(of: rarity) { content.customType = "rare" }
                let message = try batch.perform(
                    SendMessage(channel: channel, clientId: ClientID("\(number)"), content: content), as: author)
                if number.isMultiple(of: 97) { places.append((message.messageId, message.createdAt)) }
            }
            try seed.forEach(0..<mentionCount) { batch, number in
                let content = MessageContent(text: SampleText.message, mentionees: [.users([reader])])
                try batch.perform(SendMessage(channel: mentioning, clientId: ClientID("\(number)"), content: content), as: author)
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: [reader])
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        let newest = Seq(count)
        func anywhere() -> (id: MessageID, time: Timestamp) { places[Int.random(in: places.indices)] }
        let calls: [(LoadSocket) throws -> Void] = [
            { _ = try $0.call(ListMessages(channel: channel, limit: pageSize)) },
            { _ = try $0.call(ListMessages(channel: channel, before: .random(in: 100...newest), limit: pageSize)) },
            { _ = try $0.call(ListMessages(channel: channel, aroundMessage: anywhere().id, limit: pageSize)) },
            { _ = try $0.call(ListMessages(channel: channel, beforeTime: anywhere().time, limit: pageSize)) },
            {
                let before = Seq.random(in: 100...newest)
                _ = try $0.call(ListMessages(channel: channel, before: before, limit: pageSize, customType: "rare"))
            },
            { _ = try $0.call(ListMentions(limit: pageSize)) },
        ]
        var costs: [[Double]] = Array(repeating: [], count: calls.count)
        for round in 0..<scale.pick(6, quick: 3, smoke: 2) {
            for (index, call) in calls.enumerated() {
                let load = CallLoad(loop: loop, server: server, socket: 0)
                let result = try load.run(scale.pick(1000, quick: 400, smoke: 10)) { socket, _ in try call(socket) }
                if round > 0 { costs[index].append(result.cpuPerCall) }
            }
        }
        loop.closeAll()
        let medians = costs.map { $0.sorted()[$0.count / 2] }
        let (last, bySeq) = (medians[0], medians[1])
        return [
            Figure("server CPU per newest page of \(pageSize)", last, "µs"),
            Figure("server CPU per page anywhere in \(count)", bySeq, "µs", floor: last, goals: [.ratioAtMost(1.2)]),
            Figure("server CPU per page around a message's id", medians[2], "µs", floor: bySeq, goals: [.ratioAtMost(1.3)]),
            Figure("server CPU per page before a time", medians[3], "µs", floor: bySeq, goals: [.ratioAtMost(1.3)]),
            Figure("server CPU per page of what matches one in \(rarity)", medians[4], "µs"),
            Figure(
                "server CPU per first page of \(mentionCount) own mentions", medians[5] / 1000, "ms", goals: [.atMost(2)]),
        ]
    }
}
