import Foundation
import RoostAPI
import RoostCore

/// Measures messages with all optional fields, edits and mentions: the floor of each figure is a plain message to the same channel in the same run.
struct MessageFieldsBenchmark: Benchmark {
    static let name = "messages"
    private let author = UserID("author")
    private let room = ChannelID("room")
    private let large = ChannelID("large")
    private let mentionedCount = 10
    /// Calls under way.
    private let window = 32

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let members = (0..<100).map { UserID("member-\($0)") }
        let others = (0..<scale.pick(299_899, quick: 30_000, smoke: 600)).map { UserID("user-\($0)") }
        var earlier: [MessageID] = []
        try Seed.fill(directory) { seed in
            try seed.addUsers([author] + members + others)
            try seed.forEach([room, large]) { try $0.perform(CreateChannel(channel: $1, users: members), as: author) }
            try seed.forEach(Array(stride(from: 0, to: others.count, by: Limits.membersPerCall))) { batch, start in
                let users = Array(others[start..<min(start + Limits.membersPerCall, others.count)])
                try batch.perform(AddMembers(channel: large, users: users), as: author)
            }
            try seed.forEach(0..<1000) { batch, number in
                let message = SendMessage(channel: room, clientId: ClientID("seed-\(number)"), text: SampleText.message)
                earlier.append(try batch.perform(message, as: author).messageId)
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: [author])
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        let calls = calls(mentioning: Array(members.prefix(mentionedCount)), editing: earlier)
        var costs: [[Double]] = Array(repeating: [], count: calls.count)
        // Alternating, so that a slow moment of the machine affects all of them.
        for round in 0..<scale.pick(6, quick: 3, smoke: 2) {
            for (index, call) in calls.enumerated() {
                let load = CallLoad(loop: loop, server: server, socket: 0)
                let result = try load.run(scale.pick(4000, quick: 1500, smoke: 40), window: window) { try call($0, round, $1) }
                // The first round warms up.
                if round > 0 { costs[index].append(result.cpuPerCall) }
            }
        }
        loop.closeAll()
        let medians = costs.map { $0.sorted()[$0.count / 2] }
        let (plain, fields, mentions, edit, largePlain, largeMention) =
            (medians[0], medians[1], medians[2], medians[3], medians[4], medians[5])
        return [
            Figure("server CPU per plain message", plain, "µs"),
            Figure("the same with metadata and metaArrays", fields, "µs", floor: plain, goals: [.ratioAtMost(1.3)]),
            Figure("what each mentioned user adds", (mentions - plain) / Double(mentionedCount), "µs", goals: [.atMost(10)]),
            Figure("server CPU per edit", edit, "µs", floor: plain, goals: [.ratioAtMost(1.2)]),
            Figure(
                "server CPU per mention of a channel of \(others.count + members.count + 1)", largeMention, "µs", floor: largePlain,
                goals: [.ratioAtMost(1.1)]),
        ]
    }

    private typealias Call = (_ socket: LoadSocket, _ round: Int, _ number: Int) throws -> Void

    private func calls(mentioning users: [UserID], editing earlier: [MessageID]) -> [Call] {
        func send(_ kind: String, to channel: ChannelID, _ change: @escaping (inout MessageContent) -> Void = { _ in }) -> Call {
            { socket, round, number in
                var content = MessageContent(text: SampleText.message)
                change(&content)
                let clientId = ClientID("\(kind)-\(round)-\(number)")
                _ = try socket.call(SendMessage(channel: channel, clientId: clientId, content: content))
            }
        }
        return [
            send("plain", to: room),
            send("fields", to: room) { content in
                content.metadata = ["place": "Berlin", "size": 3]
                content.metaArrays = ["likes": ["ann", "ben"], "seen": ["carla"]]
            },
            send("mentions", to: room) { $0.mentionees = [.users(users)] },
            { [room] socket, round, number in
                let text = "\(SampleText.message.dropLast(8))\(round)-\(number)"
                _ = try socket.call(EditMessage(channel: room, message: earlier[number % earlier.count], text: text))
            },
            send("plain", to: large),
            send("mention", to: large) { $0.mentionees = [.channel] },
        ]
    }
}
