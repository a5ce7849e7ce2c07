import ArgumentParser
import Roost
import RoostAPI

extension Members {
    struct Invitations: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List pending invitations: the user's own, or those to a channel.")

        @Argument(help: "The channel's id. If left out, the user's own invitations are listed.") var channel: ChannelID?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                if let channel {
                    let found = try await page.read(through: connection) {
                        ListInvitations(channel: channel, limit: $0, cursor: $1)
                    }
                    try page.show(found, with: options, none: "No invitations.") { MemberText.table($0, UserNames(found.users)) }
                } else {
                    let found = try await page.read(through: connection) { ListMyInvitations(limit: $0, cursor: $1) }
                    try page.show(found, with: options, none: "No invitations.") { MemberText.table($0, UserNames(found.users)) }
                }
            }
        }
    }

    struct Accept: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Accept an invitation, and become a member.")

        @OptionGroup var target: ChannelTarget
        var call: AcceptInvitation { AcceptInvitation(channel: target.channel) }
    }

    struct Decline: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Decline an invitation.")

        @OptionGroup var target: ChannelTarget
        var call: DeclineInvitation { DeclineInvitation(channel: target.channel) }
        func lines(of answer: Invitation) -> [String] { ["The invitation into \(target.name) is declined."] }
    }
}
