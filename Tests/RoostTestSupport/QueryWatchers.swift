import Foundation
public import RoostAPI
import Synchronization

/// Non-members who watch a channel by a query while its members send to it.
public enum QueryWatchers {
    /// Has non-members start to watch a public channel, one on each of the servers, while a member sends to it without a pause.
    ///
    /// - Returns: For each who missed a message after those of the answer, or got one twice, the seqs that arrived; nothing if all is as
    ///   promised.
    public static func failures(
        watching channel: ChannelID, on servers: [TestServer], while sender: RawSocket
    ) async throws -> [String] {
        let isOver = Mutex(false)
        async let last = {
            while !isOver.withLock({ $0 }) { try await sender.send(channel, UUID().uuidString) }
            // A message that is in no answer.
            return try await sender.send(channel, UUID().uuidString).seq
        }()
        let watching: [(socket: RawSocket, seq: Seq)]
        do {
            defer { isOver.withLock { $0 = true } }
            watching = try await withThrowingTaskGroup { group in
                for (number, server) in servers.enumerated() {
                    group.addTask { try await watch(channel, as: UserID("stranger-\(number)"), on: server) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        }
        let end = try await last
        var failures: [String] = []
        for (socket, seq) in watching {
            var seqs: [Seq] = []
            while seqs.max() ?? seq < end { seqs += try await socket.nextEvent().rows.messages?.map(\.seq) ?? [] }
            if seqs != Array(stride(from: seq + 1, through: end, by: 1)) { failures.append("\(seqs) after \(seq) of \(end)") }
            await socket.close()
        }
        return failures
    }

    private static func watch(
        _ channel: ChannelID, as user: UserID, on server: TestServer
    ) async throws -> (socket: RawSocket, seq: Seq) {
        let socket = try await server.socket(user)
        let page = try await socket.call(QueryAndWatchChannels(query: QueryChannels(membership: .all, ids: [channel])))
        guard let view = page.items.first, await socket.events.isEmpty else { throw Missed("the channel, before its events") }
        return (socket, view.channel.counters.seq)
    }
}
