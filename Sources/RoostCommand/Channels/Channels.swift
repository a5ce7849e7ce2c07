import ArgumentParser
import Roost
import RoostAPI

/// `roost channels`: shows and changes channels, for scripts and people.
struct Channels: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, create and change channels.",
        discussion: """
            With --as on the server's machine it makes its own token from the data directory; anywhere else, give one with --token or ROOST_TOKEN. \
            Exit code 1 if the server refuses; the refusal and its code are printed to standard error.
            """,
        subcommands: [
            List.self, Get.self, Create.self, Update.self, Delete.self, Freeze.self, Unfreeze.self, Silence.self, Unsilence.self,
            Hide.self, Unhide.self, Types.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List channels: the user's own, or all that the user may find.")

        @Option(
            help: "Which channels: the user's own, all that the user may find, or those of them that the user isn't a member of.")
        var membership: MembershipFilter = .member
        @Option(help: "Only this type. Repeat for more.") var type: [ChannelType] = []
        @Option(help: "Only with this tag. Repeat to match any of several.") var tag: [String] = []
        @Option(help: "Only channels without this tag. Repeat for channels without any of several.") var withoutTag: [String] = []
        @Option(help: "Only channels whose name contains this.") var name: String?
        @Option(help: "Only with this member. Repeat for channels with all of several.") var user: [UserID] = []
        @Option(help: "Which hidden channels. (default: unhiddenOnly)") var hidden: HiddenFilter?
        @Flag(help: "Only with unread messages.") var unread = false
        @Flag(help: "Deleted channels too, where the user may see them.") var deleted = false
        @Option(help: "The order. (default: lastMessage for the user's own, otherwise created)") var sort: ChannelSort?
        @Option(help: "The direction of the order. (default: ascending for name, otherwise descending)") var order: SortDirection?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: CallOptions

        /// The options, by the names of the fields that they set.
        private static let names = [
            "types": "--type", "includingTags": "--tag", "excludingTags": "--without-tag", "nameContains": "--name",
            "includingUsers": "--user", "hidden": "--hidden", "unreadOnly": "--unread", "sort": "--sort",
        ]

        func run() async throws {
            try await options.run(naming: Self.names) { connection in
                let found = try await page.read(through: connection, operation)
                try page.show(found, with: options, none: "No channels.") { ChannelText.table($0, UserNames(found.users)) }
                if found.isEmptyEnd, !options.json { await noteUnknownTypes(through: connection) }
            }
        }

        /// Reports types that don't exist: a typo may be why nothing was found.
        private func noteUnknownTypes(through connection: CallConnection) async {
            guard !type.isEmpty, let known = try? await connection.call(ListChannelTypes()).map(\.type) else { return }
            for wanted in type where !known.contains(wanted) {
                Output.note("\(wanted.rawValue.safe()) isn't a channel type: see roost channels types.")
            }
        }

        private func operation(limit: Int?, cursor: String?) -> QueryChannels {
            QueryChannels(
                membership: membership, types: type.orNil, includingTags: tag.orNil, excludingTags: withoutTag.orNil,
                nameContains: name, includeDeleted: deleted ? true : nil, hidden: hidden, unreadOnly: unread ? true : nil,
                includingUsers: user.orNil, sort: sort, order: order, limit: limit, cursor: cursor)
        }
    }

    struct Get: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Show a channel.")

        @OptionGroup var target: ChannelTarget
        var call: GetChannel { GetChannel(channel: target.channel) }
    }

    struct Delete: ChannelCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete a channel.",
            discussion: "It can no longer be written to or joined; admins and those who were members can still read it.")

        @OptionGroup var target: ChannelTarget
        var call: DeleteChannel { DeleteChannel(channel: target.channel) }
        func lines(of answer: Done) -> [String] { ["\(target.name) is deleted."] }
    }

    struct Types: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the types that channels can have.", discussion: "--json prints the whole policy of each.")

        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let types = try await connection.call(ListChannelTypes())
                try options.show(types, ChannelText.types(types))
            }
        }
    }
}

extension Array {
    /// Nil for an option that wasn't given.
    var orNil: Self? { isEmpty ? nil : self }
}
