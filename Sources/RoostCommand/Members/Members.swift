import ArgumentParser
import Roost
import RoostAPI

/// `roost members`: lists, invites, adds and removes members of a channel.
struct Members: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, invite, add and remove members.",
        discussion: """
            With --as on the server's machine it makes its own token from the data directory; anywhere else, give one with --token or ROOST_TOKEN. \
            Exit code 1 if the server refuses; the refusal and its code are printed to standard error. If several users are given, each gets its \
            own line, on standard error if it was refused; one refusal makes the exit code 1.
            """,
        subcommands: [
            List.self, Search.self, Add.self, Remove.self, Role.self, Invite.self, Withdraw.self, Invitations.self, Accept.self,
            Decline.self, Join.self, Leave.self,
        ])

    /// The members to list.
    struct Filters: ParsableArguments {
        @Option(help: "Only in this state. Repeat for more. (default: member)") var state: [MemberFilter] = []
        @Option(help: "Only with this role. Repeat for more.") var role: [ChannelRole] = []

        /// The options of member lists, by the names of the fields that they set.
        static let names = ["states": "--state", "roles": "--role", "sort": "--sort", "order": "--order"]

        /// Prints a list of members. If it is empty, reports roles that don't exist: a typo may be why.
        func show(
            _ found: Page<MemberEntry>, of page: PageOptions, with options: CallOptions, through connection: CallConnection
        ) async throws {
            try page.show(found, with: options, none: "No such members.", MemberText.table)
            guard found.isEmptyEnd, !options.json, !role.isEmpty,
                let known = try? await connection.call(ListRoles()).map(\.role)
            else { return }
            for wanted in role where !known.contains(wanted) {
                Output.note("\(wanted.rawValue.safe()) isn't a role: see roost call role.list.")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the members of a channel.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var filters: Filters
        @Option(help: "The order. (default: firstCreated)") var sort: MemberSort?
        @Option(help: "The direction of --sort userId. (default: ascending)") var order: SortDirection?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run(naming: Filters.names) { connection in
                let found = try await page.read(through: connection) { limit, cursor in
                    ListMembers(
                        channel: channel, states: filters.state.orNil, roles: filters.role.orNil, sort: sort, order: order,
                        limit: limit, cursor: cursor)
                }
                try await filters.show(found, of: page, with: options, through: connection)
            }
        }
    }

    struct Search: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Find members by name or id.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: "A part of the name, or the beginning of the id.") var text: String
        @OptionGroup var filters: Filters
        @OptionGroup var page: PageOptions
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run(naming: Filters.names) { connection in
                let found = try await page.read(through: connection) { limit, cursor in
                    SearchMembers(
                        channel: channel, text: text, states: filters.state.orNil, roles: filters.role.orNil, limit: limit,
                        cursor: cursor)
                }
                try await filters.show(found, of: page, with: options, through: connection)
            }
        }
    }

    struct Join: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Join a channel.")

        @OptionGroup var target: ChannelTarget
        var call: JoinChannel { JoinChannel(channel: target.channel) }
    }

    struct Leave: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Leave a channel.")

        @OptionGroup var target: ChannelTarget
        var call: LeaveChannel { LeaveChannel(channel: target.channel) }
        func lines(of answer: Done) -> [String] { ["You are no longer a member of \(target.name)."] }
    }
}
