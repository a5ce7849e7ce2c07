import Foundation
import RoostAPI

/// One user in very many channels, each with a few unread messages.
enum ChannelListWorld {
    static let messagesPerChannel = 3
    static let settings = ["--channels-per-user", "\(Limits.channelsPerUserMax)"]

    static func fill(_ directory: URL, user: UserID, writer: UserID, count: Int) throws -> [ChannelID] {
        let channels = (0..<count).map { ChannelID("channel-\($0)") }
        try Seed.fill(directory) { seed in
            seed.options.channelsPerUser = Limits.channelsPerUserMax
            try seed.addUsers([user, writer])
            try seed.forEach(channels) { batch, channel in
                try batch.perform(CreateChannel(channel: channel, displayName: "Name of \(channel)", users: [user]), as: writer)
            }
            for round in 0..<messagesPerChannel {
                try seed.forEach(channels.shuffled()) { batch, channel in
                    let message = SendMessage(channel: channel, clientId: ClientID("\(round)"), text: SampleText.message)
                    try batch.perform(message, as: writer)
                }
            }
        }
        return channels
    }
}
