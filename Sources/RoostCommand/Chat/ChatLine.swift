import Foundation
import Roost
import RoostAPI

/// A typed line: a message, or a command.
enum ChatLine: Hashable {
    case message(String)
    case quit
    /// With the command to explain; nil for all of them.
    case help(ChatCommandName?)
    /// A command for the messages shown.
    case scrollback(ScrollbackCommand)
    /// A command for the channel and its members.
    case room(RoomCommand)
    /// An invalid command, with a hint at the correct form.
    case refused(String)

    init(_ line: String) {
        guard line.hasPrefix("/") else {
            self = .message(line)
            return
        }
        // Two slashes begin a message that begins with one.
        guard !line.hasPrefix("//") else {
            self = .message(String(line.dropFirst()))
            return
        }
        let typed = String(line.dropFirst().prefix { !$0.isWhitespace })
        let rest = line.dropFirst(1 + typed.count).drop(while: \.isWhitespace)
        guard let command = ChatHelp.command(typed.lowercased()) else {
            self = .refused("/\(typed.safe()) isn't a command; /help lists them, //\(typed.safe()) sends it as a text")
            return
        }
        var words = Words(String(rest))
        do {
            self = try Self.read(command.name, &words)
        } catch {
            let link = error.reason.hasSuffix("?") ? " " : error.reason.hasSuffix(".") ? " Usage: " : ": "
            self = .refused(error.reason + link + command.usage)
        }
    }

    /// The offset in a typed line at which a message's text begins, in UTF-16 code units: after the command for an edited message. Nil in a
    /// line without a message's text.
    static func textStart(in line: String) -> Int? {
        guard line.hasPrefix("/") else { return 0 }
        guard !line.hasPrefix("//") else { return 1 }
        let command = line.dropFirst().prefix { !$0.isWhitespace }
        let rest = line.dropFirst(1 + command.count)
        guard ChatHelp.command(command.lowercased())?.name == .edit, !rest.isEmpty else { return nil }
        return rest.drop(while: \.isWhitespace).startIndex.utf16Offset(in: line)
    }

    private static func read(_ name: ChatCommandName, _ words: inout Words) throws(Words.InvalidInput) -> ChatLine {
        let line: ChatLine
        switch name {
        case .quit: line = .quit
        case .help: line = .help(try words.commandIfAny())
        case .older: line = .scrollback(.older)
        case .delete: line = .scrollback(.delete)
        case .retry: line = .scrollback(.retry)
        case .discard: line = .scrollback(.discard)
        case .unread: line = .scrollback(.unread)
        case .read:
            // The messages on the screen are marked as read anyway.
            guard words.flag("all") else { throw Words.InvalidInput(reason: "which channels?") }
            line = .scrollback(.readAll)
        case .edit: line = .scrollback(.edit(words.takeText()))
        case .goto: line = .scrollback(.goto(try words.place()))
        case .mentions: line = .room(.mentions)
        case .reset: line = .room(.reset)
        case .join: line = .room(.join(try words.channel()))
        case .create: line = .room(try .create(reading: &words))
        case .invite: line = .room(try .invite(reading: &words))
        case .accept: line = .room(.accept(try words.channelIfAny()))
        case .decline: line = .room(.decline(try words.channelIfAny()))
        case .leave: line = .room(.leave)
        case .members: line = .room(.members)
        case .who: line = .room(.who)
        case .devices: line = .room(.devices)
        case .status: line = .room(.status(words.takeText() ?? ""))
        case .unhide: line = .room(.unhide)
        case .mute: line = .room(.mute(seconds: try words.secondsIfAny()))
        case .unmute: line = .room(.unmute)
        case .invitations: line = .room(.invitations)
        case .hide: line = .room(.hide(archive: words.flag("--archive"), clear: words.flag("--clear")))
        case .list: line = .room(.list(hidden: words.flag("hidden")))
        }
        try words.end()
        return line
    }
}

/// A command for the messages shown.
enum ScrollbackCommand: Hashable {
    case older, delete, retry, discard, unread, readAll
    /// Nil if the new text still has to be entered.
    case edit(String?)
    case goto(Place)

    /// A position in a channel: at a message, or at the first one since a time.
    enum Place: Hashable {
        case message(MessageID)
        case time(Timestamp)
    }
}

/// A command for a channel, its members or the user's channels.
enum RoomCommand: Hashable {
    case join(ChannelID)
    case create(ChannelID, type: ChannelType, users: [UserID])
    case invite([UserID], welcome: String?)
    /// Nil for the only pending invitation.
    case accept(ChannelID?), decline(ChannelID?)
    case leave, members, who, devices, unhide, unmute, invitations, mentions, reset
    case hide(archive: Bool, clear: Bool)
    /// Nil for no end.
    case mute(seconds: Int?)
    /// An empty text removes it.
    case status(String)
    case list(hidden: Bool)

    fileprivate static func create(reading words: inout Words) throws(Words.InvalidInput) -> RoomCommand {
        let type = try words.option("--type").map(ChannelType.init(rawValue:)) ?? .community
        try words.valid { try type.validate(field: "The type") }
        return .create(try words.channel(), type: type, users: try words.users())
    }

    fileprivate static func invite(reading words: inout Words) throws(Words.InvalidInput) -> RoomCommand {
        let welcome = words.takeText(after: "--")
        let users = try words.users()
        guard !users.isEmpty else { throw Words.InvalidInput(reason: "which users?") }
        return .invite(users, welcome: welcome)
    }
}

/// The words after a command, consumed as they are parsed.
private struct Words {
    struct InvalidInput: Error { let reason: String }

    private var text: String
    private var words: [String]

    init(_ text: String) {
        self.text = text
        words = text.split(whereSeparator: \.isWhitespace).map(String.init)
    }

    /// Takes the whole rest as typed; nil if there is none.
    mutating func takeText() -> String? {
        words = []
        return text.isEmpty ? nil : text
    }

    /// Takes the text after a word, as typed.
    mutating func takeText(after mark: String) -> String? {
        guard let index = words.firstIndex(of: mark) else { return nil }
        words.removeSubrange(index...)
        var rest = text[...]
        for _ in 0..<index { rest = rest.drop { !$0.isWhitespace }.drop(while: \.isWhitespace) }
        let after = rest.dropFirst(mark.count).drop(while: \.isWhitespace)
        return after.isEmpty ? nil : String(after)
    }

    mutating func flag(_ name: String) -> Bool {
        guard let index = words.firstIndex(of: name) else { return false }
        words.remove(at: index)
        return true
    }

    mutating func option(_ name: String) throws(InvalidInput) -> String? {
        guard let index = words.firstIndex(of: name) else { return nil }
        words.remove(at: index)
        guard words.indices.contains(index) else { throw InvalidInput(reason: "\(name) needs a word after it") }
        return words.remove(at: index)
    }

    mutating func channelIfAny() throws(InvalidInput) -> ChannelID? {
        guard !words.isEmpty else { return nil }
        return try channel()
    }

    mutating func channel() throws(InvalidInput) -> ChannelID {
        guard !words.isEmpty else { throw InvalidInput(reason: "which channel?") }
        try refuseOption()
        let channel = ChannelID(words.removeFirst())
        try valid { try channel.validate(field: "A channel's id") }
        return channel
    }

    /// A message's id, or a time.
    mutating func place() throws(InvalidInput) -> ScrollbackCommand.Place {
        guard !words.isEmpty else { throw InvalidInput(reason: "where to?") }
        try refuseOption()
        let word = words.removeFirst()
        if let id = Int64(word), id > 0 { return .message(MessageID(rawValue: id)) }
        guard let time = TimeArgument(argument: word) else {
            throw InvalidInput(reason: "a time must be like 2026-03-02T09:05:00Z, or 2026-03-02 for its start in UTC")
        }
        return .time(time.timestamp)
    }

    /// The name of a command, with or without its slash.
    mutating func commandIfAny() throws(InvalidInput) -> ChatCommandName? {
        guard !words.isEmpty else { return nil }
        let word = words.removeFirst()
        let name = (word.hasPrefix("/") ? String(word.dropFirst()) : word).lowercased()
        guard let command = ChatHelp.command(name) else { throw InvalidInput(reason: "\(word.safe()) isn't a command") }
        return command.name
    }

    mutating func secondsIfAny() throws(InvalidInput) -> Int? {
        guard !words.isEmpty else { return nil }
        try refuseOption()
        let word = words.removeFirst()
        guard let duration = Lifetime(argument: word) else {
            throw InvalidInput(reason: "\(word.safe()) isn't a duration: give seconds, or one like 90s, 45m, 12h, 30d")
        }
        return duration.seconds
    }

    /// All remaining words.
    mutating func users() throws(InvalidInput) -> [UserID] {
        try refuseOption()
        let users = words.map { UserID($0) }
        for user in users { try valid { try user.validate(field: "A user's id") } }
        words = []
        return users
    }

    /// Throws if any words are left.
    func end() throws(InvalidInput) {
        try refuseOption()
        guard let word = words.first else { return }
        throw InvalidInput(reason: "Unexpected argument: \(word.safe()).")
    }

    func valid(_ check: () throws -> Void) throws(InvalidInput) {
        do { try check() } catch { throw InvalidInput(reason: (error as? RoostError)?.message.trimmingSuffix(".") ?? "\(error)") }
    }

    /// A word with two dashes is a mistyped option rather than an id.
    private func refuseOption() throws(InvalidInput) {
        guard let option = words.first(where: { $0.hasPrefix("--") }) else { return }
        throw InvalidInput(reason: "\(option.safe()) isn't an option here")
    }
}

extension String {
    fileprivate func trimmingSuffix(_ suffix: String) -> String { hasSuffix(suffix) ? String(dropLast(suffix.count)) : self }
}
