import ArgumentParser
import Roost

extension Members {
    struct Invitations: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the invitations that wait for an answer: the user's own, or those into a channel.")

        @Argument(help: "The channel's id. The user's own invitations when it is left out.") var channel: ChannelID?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                if let channel {
                    let found = try await page.read(through: connection) {
                        ListInvitations(channel: channel, limit: $0, cursor: $1)
                    }
                    try page.show(found, with: options, none: "No invitations.", MemberText.table)
                } else {
                    let found = try await page.read(through: connection) { ListMyInvitations(limit: $0, cursor: $1) }
                    try page.show(found, with: options, none: "No invitations.", MemberText.table)
                }
            }
        }
    }

    struct Accept: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Accept an invitation, and become a member.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let view = try await connection.call(AcceptInvitation(channel: channel))
                try options.show(view, ChannelText.details(view))
            }
        }
    }

    struct Decline: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Decline an invitation.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let invitation = try await connection.call(DeclineInvitation(channel: channel))
                try options.show(invitation, ["The invitation into \(channel.rawValue.safe()) is declined."])
            }
        }
    }
}
