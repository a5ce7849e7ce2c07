import Foundation
import Logging
import Roost
import RoostAPI

/// The users, channels and messages of the demo, created through the SDK as by any app.
///
/// Creating them again changes nothing: channels keep their ids, and messages their client ids. Users who have left a channel stay out of
/// it, and a channel deleted since stays deleted. Anything missing from an interrupted run is created.
struct DemoWorld {
    let address: URL
    /// The settings that the server runs with.
    let settings: Settings

    private static let people: [(user: UserID, name: String)] = [("ann", "Ann"), ("bob", "Bob"), ("cat", "Cat")]
    private static let channels: [(id: ChannelID, name: String)] = [
        ("general", "General"), ("random", "Random"), ("support", "Support"),
    ]
    private static let messages: [(channel: ChannelID, user: UserID, text: String)] = [
        ("general", "ann", "Hello! This is the demo of Roost."),
        ("general", "bob", "Hi Ann. So every message here is on disk before it counts as sent?"),
        ("general", "ann", "Yes. Kill the server while you type, start it again, and see: nothing is lost, nothing is duplicated."),
        ("general", "cat", "I'll try that 🙂"),
        ("random", "cat", "Who brought the cake?"),
        ("random", "bob", "Not me. But I had two pieces."),
        ("support", "bob", "How do I get a token for my app?"),
        ("support", "ann", "roost token bob makes one. In an app, your backend does that for the signed-in user."),
    ]

    func make() async throws {
        var chats: [UserID: Chat] = [:]
        var logger = Logger(label: "roost.demo")
        logger.logLevel = .error
        let mint = TokenMint(directory: settings.dataDirectory, rules: TokenRules(settings))
        for (user, name) in Self.people {
            let chat = Chat(url: address, user: user, configuration: .init(storage: .inMemory, device: nil, logger: logger)) {
                try await mint.token(for: user)
            }
            // A server with fewer connections than users would let the last one wait for ever.
            try await chat.connect(timeout: .seconds(10))
            if try await chat.me().displayName == nil { try await chat.updateMe(displayName: name) }
            for (id, name) in Self.channels {
                try await Self.toleratingRefusals { _ = try await chat.createChannel(id, displayName: name) }
                try await Self.toleratingRefusals { try await Self.enter(id, by: chat) }
            }
            chats[user] = chat
        }
        for (number, message) in Self.messages.enumerated() {
            let send = SendMessage(channel: message.channel, clientId: ClientID("demo-\(number + 1)"), text: message.text)
            try await Self.toleratingRefusals { _ = try await chats[message.user]?.call(send) }
        }
        for chat in chats.values { await chat.disconnect() }
    }

    /// Joins a channel, unless the user is a member or was one.
    private static func enter(_ channel: ChannelID, by chat: Chat) async throws {
        guard try await chat.call(GetChannel(channel: channel)).membership == nil else { return }
        _ = try await chat.call(JoinChannel(channel: channel))
    }

    /// A refused call concerns something created by an earlier run or changed by users since, such as a deleted channel.
    private static func toleratingRefusals(_ body: () async throws -> Void) async throws {
        do { try await body() } catch let error as RoostError where !error.isRetryable {}
    }
}
