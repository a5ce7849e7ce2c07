import Foundation
import Roost

/// The app's own names, or Foundation's, that the protocol has too.
struct Schema {}
final class Upload: Operation, @unchecked Sendable {}

/// A screen that shows a channel.
@MainActor final class Screen {
    let queue = OperationQueue()
    private(set) var channel: Channel?
    private(set) var members: [MemberItem] = []

    func upload() -> [Operation] {
        let operations: [Operation] = [Upload(), BlockOperation {}]
        queue.addOperations(operations, waitUntilFinished: false)
        return operations
    }

    /// A row of a preview.
    let row = MessageItem("hi", sender: UserSummary(userId: "ann", displayName: "Ann"), createdAt: Timestamp(Date.now))

    func show(_ number: Int, of chat: Chat) async throws {
        let live = chat.channel("room-\(number)")
        try await live.loaded()
        channel = live.channel
        let id = ChannelID("room-\(number)")
        let query = ChannelQuery(
            types: [.community], ids: [id], createdAfter: 0, unreadOnly: true, sort: .unreadFirst, order: .descending)
        let list = chat.channels(matching: query)
        print(list.items.map { "\($0.channel.attributes.displayName ?? "\($0.id)") \($0.channel.createdAt.date)" })
        members = live.members().items
        if live.hasPermission(.messageSend) { try await live.send("It's \(Date.now) in \(live.id).") }
        try? await live.join()
    }
}

/// Sends one message.
@main
enum Consumer {
    static func main() async throws {
        guard let server = URL(string: "http://127.0.0.1:8080") else { return }
        let chat = Chat(url: server, user: "ann") { ProcessInfo.processInfo.environment["TOKEN"] ?? "" }
        do {
            try await chat.connect(timeout: .seconds(5))
            try await Screen().show(1, of: chat)
        } catch let error as RoostError where error.code == .notConnected {
            print(error.message)
        }
    }
}
