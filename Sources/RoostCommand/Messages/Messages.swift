import ArgumentParser
import Foundation
import Roost
import RoostAPI

/// `roost messages`: sends, lists, follows, edits and deletes messages, for scripts.
struct Messages: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send, list, follow, edit and delete messages.",
        discussion: """
            With --as on the server's machine it makes its own token from the data directory; anywhere else, give one with --token or ROOST_TOKEN. \
            Exit code 1 if the server refuses; the refusal and its code are printed to standard error.

            Lists print a message as a line: its id, its seq, its time, its sender's id and its text. With --json they print the response as the \
            protocol has it.
            """,
        subcommands: [
            List.self, Send.self, Follow.self, Edit.self, Delete.self, Undelete.self, Versions.self, Mentions.self, Reset.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List messages of a channel: the newest, or those at a position.",
            discussion: "A time is like 2026-03-02T09:05:00Z, in any time zone, or 2026-03-02, the start of that day in UTC.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Option(help: ArgumentHelp("Messages before a seq.", valueName: "seq"), transform: NumberArgument.seq)
        var before: Seq?
        @Option(help: ArgumentHelp("Messages after a seq.", valueName: "seq"), transform: NumberArgument.seq)
        var after: Seq?
        @Option(
            help: ArgumentHelp("Messages on both sides of a message, including it.", valueName: "id"),
            transform: NumberArgument.messageID)
        var around: MessageID?
        @Option(help: ArgumentHelp("Messages sent before a time.", valueName: "time"), transform: TimeArgument.read)
        var beforeTime: TimeArgument?
        @Option(help: ArgumentHelp("Messages sent after a time.", valueName: "time"), transform: TimeArgument.read)
        var afterTime: TimeArgument?
        @Option(help: ArgumentHelp("Messages on both sides of a time.", valueName: "time"), transform: TimeArgument.read)
        var aroundTime: TimeArgument?
        @Option(help: "Only of this kind. Repeat for more.") var kind: [MessageKind] = []
        @Option(help: "Only with this custom type.") var customType: String?
        @Option(help: ArgumentHelp("Only from this user. Repeat for more.", valueName: "user")) var sender: [UserID] = []
        @Option(help: ArgumentHelp("Messages per page, 1 to 100.", valueName: "rows"), transform: NumberArgument.pageLimit)
        var limit: Int?
        @Flag(help: "The newest first.") var reverse = false
        @OptionGroup var options: CallOptions

        func validate() throws {
            let places: [(name: String, isGiven: Bool)] = [
                ("--before", before != nil), ("--after", after != nil), ("--around", around != nil),
                ("--before-time", beforeTime != nil), ("--after-time", afterTime != nil), ("--around-time", aroundTime != nil),
            ]
            let given = places.filter { $0.isGiven }.map { $0.name }
            guard given.count <= 1 else {
                throw ValidationError("\(given.joined(separator: ", ")) can't be combined: give one position.")
            }
        }

        func run() async throws {
            let names = [
                "kinds": "--kind", "customType": "--custom-type", "senders": "--sender", "beforeTime": "--before-time",
                "afterTime": "--after-time", "aroundTime": "--around-time",
            ]
            try await options.run(naming: names) { connection in
                let page = try await connection.call(
                    ListMessages(
                        channel: channel, before: before, after: after, aroundMessage: around, beforeTime: beforeTime?.timestamp,
                        afterTime: afterTime?.timestamp, aroundTime: aroundTime?.timestamp, limit: limit, kinds: kind.orNil,
                        customType: customType, senders: sender.orNil, reverse: reverse ? true : nil))
                try options.show(page, MessageText.table(page.messages))
                guard !options.json else { return }
                if page.messages.isEmpty {
                    let isEphemeral = (try? await connection.call(GetChannel(channel: channel)))?.channel.isEphemeral == true
                    Output.note(
                        isEphemeral ? "\(channel.rawValue.safe()) is ephemeral and keeps no messages." : "No such messages.")
                }
                // Around an empty page there are only messages on one side: all of those in the channel.
                let first = page.from ?? page.messages.map(\.seq).min() ?? page.seq + 1
                let last = page.to ?? page.messages.map(\.seq).max() ?? 0
                if page.hasOlder { Output.note("There are older ones: --before \(first)") }
                if page.hasNewer { Output.note("There are newer ones: --after \(last)") }
            }
        }
    }

    struct Edit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the text of a message.",
            discussion: """
                Mentions whose name is still in the text stay, and so do those that were never in it; the others are removed.
                """)

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: "The message's id.", transform: NumberArgument.messageID) var message: MessageID
        @Argument(help: "The new text.") var text: String
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let edited = try await connection.call(try await edit(through: connection))
                try options.show(edited, MessageText.table([edited]))
            }
        }

        private func edit(through connection: CallConnection) async throws -> EditMessage {
            let content: MessageContent
            do {
                content = try await connection.call(GetMessage(channel: channel, message: message)).content
            } catch let refusal as RoostError where !refusal.isRetryable {
                // A caller who may not read it can't edit it either: the response to the edit says so.
                return EditMessage(channel: channel, message: message, text: text)
            }
            // The metadata may have the places of users that the message doesn't mention.
            guard content.mentionees != nil || content.metadata != nil else {
                return EditMessage(channel: channel, message: message, text: text)
            }
            let unknown = EditedMentions.usersToName(in: content).prefix(Limits.usersPerCall)
            let users = unknown.isEmpty ? [] : try await connection.call(GetUsers(users: Array(unknown))).map(\.summary)
            return EditedMentions(of: content, named: users)
                .edit(of: message, in: channel, to: MentionComposer(text: text))
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete messages, all of them or none: their positions stay.",
            discussion: """
                With --for-good only a message's place is left; such messages are deleted one after another. With --for-me others still see \
                them.
                """)

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: "The messages' ids: at most 100.", transform: NumberArgument.messageID) var messages: [MessageID]
        @Flag(help: "Delete them permanently.") var forGood = false
        @Flag(help: "Delete them for the caller alone.") var forMe = false
        @OptionGroup var options: CallOptions

        func validate() throws {
            if forGood, forMe { throw ValidationError("--for-good and --for-me can't be combined.") }
        }

        func run() async throws {
            try await options.run { connection in
                if forMe {
                    let answer = try await connection.call(DeleteMessagesForMe(channel: channel, messages: messages))
                    try options.show(answer, answer.messages.map { "\($0.messageId) is deleted for you." })
                } else if forGood {
                    for message in messages {
                        let answer = try await connection.call(PurgeMessage(channel: channel, message: message))
                        try options.show(answer, ["\(message) is deleted for good."])
                    }
                } else {
                    let answer = try await connection.call(DeleteMessages(channel: channel, messages: messages))
                    try options.show(answer, answer.messages.map { "\($0.messageId) is deleted." })
                }
            }
        }
    }

    struct Undelete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Restore a deleted message within the time that the server's --undeletion allows.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: "The message's id.", transform: NumberArgument.messageID) var message: MessageID
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let back = try await connection.call(UndeleteMessage(channel: channel, message: message))
                try options.show(back, MessageText.table([back]))
            }
        }
    }

    struct Versions: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List a message's earlier versions, the newest first, as long as the server keeps them.",
            discussion: "A line says when the version was replaced, by whom, and its text.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: "The message's id.", transform: NumberArgument.messageID) var message: MessageID
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                var answer = try await connection.call(ListMessageVersions(channel: channel, message: message))
                while answer.hasMore, let last = answer.versions.last {
                    let more = try await connection.call(
                        ListMessageVersions(channel: channel, message: message, before: last.changeSeq))
                    answer = MessageVersions(versions: answer.versions + more.versions, hasMore: more.hasMore)
                }
                try options.show(
                    answer,
                    Output.table(
                        answer.versions.map {
                            [
                                MessageTime.moment(of: $0.replacedAt.date), $0.replacedBy.rawValue.safe(),
                                $0.text.safe() + ($0.isDeletion ? "  (deleted)" : ""),
                            ]
                        }))
                if !options.json, answer.versions.isEmpty { Output.note("No earlier versions are kept.") }
            }
        }
    }

    struct Mentions: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the messages that mention the caller by name, in all channels, the newest first.",
            discussion: "With --channel, those of one channel that mention the caller by name or with @all.")

        @Option(help: "The id of a channel: only its messages.") var channel: ChannelID?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let found = try await page.read(through: connection) { ListMentions(channel: channel, limit: $0, cursor: $1) }
                try page.show(found, with: options, none: "Nobody has mentioned you.") {
                    MessageText.table($0, hasChannel: true)
                }
            }
        }
    }

    struct Reset: ChannelCommand {
        static let configuration = CommandConfiguration(
            abstract: "Conceal all messages so far from the caller only.")

        @OptionGroup var target: ChannelTarget
        var call: ResetHistory { ResetHistory(channel: target.channel) }
        func lines(of answer: Membership) -> [String] { ["Your history of \(target.name) begins now."] }
    }
}

/// Messages as lines. Text by others is made safe for a terminal.
enum MessageText {
    /// A list in columns. The sender is an id, as commands accept it: the response to a sent message has no names.
    static func table(_ messages: [Message], hasChannel: Bool = false) -> [String] {
        Output.table(
            messages.map { message in
                [
                    "\(message.messageId)", "\(message.seq)", MessageTime.moment(of: message.createdAt.date),
                    (hasChannel ? "\(message.channelId.rawValue.safe())  " : "") + message.sender.rawValue.safe(),
                    text(of: message),
                ]
            })
    }

    /// The kind of message, unless it is a user's text: `admin`, or an app's own such as `card`.
    static func sort(of message: Message) -> String? {
        guard message.content.kind != .text else { return nil }
        return (message.content.kind == .custom ? message.content.customType?.safe() : nil) ?? message.content.kind.rawValue.safe()
    }

    /// The text on one line, with marks for its properties.
    private static func text(of message: Message) -> String {
        if message.deletedAt != nil { return "(deleted)" }
        let content = message.content
        let marks = [
            sort(of: message) ?? content.customType?.safe(), content.isSilent ? "silent" : nil,
            message.editedAt == nil ? nil : "edited",
        ].compactMap { $0 }
        return content.text.safe() + (marks.isEmpty ? "" : "  (\(marks.joined(separator: ", ")))")
    }
}

/// A time on the command line: RFC 3339, or a day.
struct TimeArgument {
    let timestamp: Timestamp

    /// Reads an option's value.
    ///
    /// - Throws: `ValidationError` with the format.
    static func read(_ text: String) throws -> TimeArgument {
        if let time = TimeArgument(argument: text) { return time }
        throw ValidationError("a time must be like 2026-03-01T12:30:05.250Z, or a day like 2026-03-01")
    }

    init?(argument: String) {
        let (day, time) = (String(argument.prefix(10)), argument.dropFirst(10))
        let dayStyle = Date.ISO8601FormatStyle().year().month().day()
        // Foundation parses leniently and carries over excess days: February 31 becomes March 3.
        guard let start = try? dayStyle.parse(day), dayStyle.format(start) == day else { return nil }
        guard !time.isEmpty else {
            timestamp = Timestamp(start)
            return
        }
        let shape = /T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]{1,9})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):?[0-5][0-9])/
        guard time.wholeMatch(of: shape) != nil else { return nil }
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: time.contains("."))
        guard let date = try? style.parse(argument) else { return nil }
        timestamp = Timestamp(date)
    }
}
