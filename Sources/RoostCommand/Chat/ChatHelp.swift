/// The name of a chat command, as typed after the slash.
enum ChatCommandName: String, CaseIterable {
    case list, join, create, invite, invitations, accept, decline, members, who, devices, status, hide, unhide, mute, unmute, leave
    case edit, delete, retry, discard, unread, read, older, goto, mentions, reset, quit, help
}

/// Every chat command, as /help shows it.
enum ChatHelp {
    struct Command: Hashable {
        let name: ChatCommandName
        var aliases: [String] = []
        /// The text after the name.
        var arguments = ""
        let what: String
        /// Whether it also works in a chat in lines, not only on a screen.
        var worksInLineMode = true

        /// The output of /help for this command.
        var help: String {
            let other = aliases.isEmpty ? "" : "; \(aliases.map { "/" + $0 }.joined(separator: " and ")) too"
            return "\(usage): \(what)\(other)\(worksInLineMode ? "" : "; on a screen only")"
        }

        /// `/invite USER … [-- WELCOME]`
        var usage: String { "/" + name.rawValue + (arguments.isEmpty ? "" : " " + arguments) }
    }

    static let commands: [Command] = [
        Command(name: .list, arguments: "[hidden]", what: "your channels and what is unread in them"),
        Command(name: .join, arguments: "ID", what: "open a channel"),
        Command(name: .create, arguments: "ID [--type TYPE] [USER …]", what: "create a channel and open it"),
        Command(name: .invite, arguments: "USER … [-- WELCOME]", what: "invite people into this one"),
        Command(name: .invitations, what: "your pending invitations"),
        Command(name: .accept, arguments: "[ID]", what: "accept an invitation and open the channel"),
        Command(name: .decline, arguments: "[ID]", what: "decline an invitation"),
        Command(name: .members, what: "members, their roles, and who is online"),
        Command(name: .who, what: "who is online, and who is watching"),
        Command(name: .devices, what: "your devices, and when each was last used"),
        Command(name: .status, arguments: "[TEXT]", what: "what others see beside your name; none removes it"),
        Command(
            name: .hide, arguments: "[--archive] [--clear]",
            what: "hide it until its next message, or with --archive until /unhide; --clear conceals its messages so far for good"),
        Command(name: .unhide, what: "show it in your list again"),
        Command(name: .mute, arguments: "[TIME]", what: "leave it out of your total, for 45m or 12h, say"),
        Command(name: .unmute, what: "count it in your total again"),
        Command(name: .leave, what: "end your membership here"),
        Command(name: .edit, arguments: "[TEXT]", what: "replace your last message, or load it to edit", worksInLineMode: false),
        Command(name: .delete, what: "delete your last message", worksInLineMode: false),
        Command(name: .retry, what: "resend what was refused; /discard drops it", worksInLineMode: false),
        Command(name: .discard, what: "drop what was refused, or is waiting for a refusal to end", worksInLineMode: false),
        Command(name: .unread, what: "mark the last message from someone else as unread", worksInLineMode: false),
        Command(name: .read, arguments: "all", what: "mark all your channels as read", worksInLineMode: false),
        Command(name: .mentions, what: "the newest messages that mention you, in all channels"),
        Command(name: .reset, what: "conceal all messages so far from yourself"),
        Command(
            name: .goto, arguments: "TIME | MESSAGE", what: "show what was written then (days in UTC); End goes back",
            worksInLineMode: false),
        Command(name: .older, what: "load older messages, as PageUp does", worksInLineMode: false),
        Command(name: .quit, aliases: ["q", "exit"], what: "end this chat"),
        Command(name: .help, aliases: ["?"], arguments: "[COMMAND]", what: "these lines, or what a command does"),
    ]

    static func command(_ name: String) -> Command? { commands.first { $0.name.rawValue == name || $0.aliases.contains(name) } }

    /// The output of /help for a command.
    static func lines(of name: ChatCommandName) -> [String] { commands.filter { $0.name == name }.map(\.help) }

    /// The output of /help on a screen of a width.
    static func screenLines(width: Int) -> [String] {
        table(commands.filter { $0.name != .discard }, width: width)
            + [
                "PageUp, PageDown, ↑, ↓ scroll; Ctrl-U, -W, -K delete; Ctrl-L redraws",
                "Tab completes a name after @: a mention; @all is the channel",
            ].flatMap { $0.wrapped(to: width) }
    }

    /// The output of /help without a screen.
    static let plainLines = table(commands.filter { $0.worksInLineMode }, width: .max)

    /// The commands in two columns. A text that is too wide continues below its beginning.
    private static func table(_ commands: [Command], width: Int) -> [String] {
        let rows = commands.map { ($0.usage, $0.what) } + [("//TEXT", "a message that begins with a slash")]
        let indent = (rows.map(\.0.columnWidth).max() ?? 0) + 2
        guard width > indent + 20 else { return rows.flatMap { "\($0.0): \($0.1)".wrapped(to: width) } }
        return rows.flatMap { usage, what in
            what.wrapped(to: width - indent).enumerated().map { number, line in (number == 0 ? usage : "").padded(to: indent) + line
            }
        }
    }
}
