import RoostAPI
import Testing

@testable import RoostCommand

@Suite("Typed lines of a chat")
struct ChatLineTests {
    @Test(
        "a line without a slash is a message, and so is one with two, minus the first",
        arguments: [("hi", "hi"), ("a /join b", "a /join b"), ("//join b", "/join b"), ("//", "/"), (" /join b", " /join b")])
    func messages(typed: String, text: String) {
        #expect(ChatLine(typed) == .message(text))
    }

    @Test(
        "commands are read with all their arguments",
        arguments: [
            ("/join random", .room(.join("random"))),
            ("/JOIN   random  ", .room(.join("random"))),
            ("/create team", .room(.create("team", type: .community, users: []))),
            ("/create team --type group bob cat", .room(.create("team", type: .group, users: ["bob", "cat"]))),
            ("/create --type my-own team bob", .room(.create("team", type: "my-own", users: ["bob"]))),
            ("/invite bob", .room(.invite(["bob"], welcome: nil))),
            ("/invite bob cat -- Come in,  both -- of you!", .room(.invite(["bob", "cat"], welcome: "Come in,  both -- of you!"))),
            ("/invite bob --", .room(.invite(["bob"], welcome: nil))),
            ("/accept", .room(.accept(nil))), ("/accept team", .room(.accept("team"))),
            ("/decline", .room(.decline(nil))), ("/decline team", .room(.decline("team"))),
            ("/leave", .room(.leave)), ("/members", .room(.members)), ("/who", .room(.who)),
            ("/devices", .room(.devices)), ("/status on holiday, back soon", .room(.status("on holiday, back soon"))),
            ("/status", .room(.status(""))), ("/mute", .room(.mute(seconds: nil))), ("/mute 2h", .room(.mute(seconds: 7200))),
            ("/unmute", .room(.unmute)),
            ("/hide", .room(.hide(archive: false, clear: false))),
            ("/hide --clear --archive", .room(.hide(archive: true, clear: true))),
            ("/unhide", .room(.unhide)), ("/list", .room(.list(hidden: false))), ("/list hidden", .room(.list(hidden: true))),
            ("/invitations", .room(.invitations)),
            ("/edit  two  words ", .scrollback(.edit("two  words "))), ("/edit", .scrollback(.edit(nil))),
            ("/older", .scrollback(.older)), ("/delete", .scrollback(.delete)), ("/retry", .scrollback(.retry)),
            ("/discard", .scrollback(.discard)), ("/unread", .scrollback(.unread)), ("/mentions", .room(.mentions)),
            ("/reset", .room(.reset)), ("/read all", .scrollback(.readAll)),
            ("/goto 7254210384203776123", .scrollback(.goto(.message(MessageID(rawValue: 7_254_210_384_203_776_123))))),
            ("/goto 2026-03-02", .scrollback(.goto(.time(Timestamp(milliseconds: 1_772_409_600_000))))),
            ("/goto 2026-03-02T02:00:00+02:00", .scrollback(.goto(.time(Timestamp(milliseconds: 1_772_409_600_000))))),
            ("/help", .help(nil)), ("/?", .help(nil)), ("/help join", .help(.join)), ("/help /Q", .help(.quit)), ("/quit", .quit),
            ("/q", .quit), ("/exit", .quit),
        ] as [(String, ChatLine)])
    func commands(typed: String, meaning: ChatLine) {
        #expect(ChatLine(typed) == meaning)
    }

    @Test(
        "a mistake is reported in one line that shows the right form",
        arguments: [
            ("/", "/ isn't a command; /help lists them, // sends it as a text"),
            ("/jion random", "/jion isn't a command; /help lists them, //jion sends it as a text"),
            ("/usr/bin/env", "/usr/bin/env isn't a command; /help lists them, //usr/bin/env sends it as a text"),
            ("/\u{1B}[2Jx", "/[2Jx isn't a command; /help lists them, //[2Jx sends it as a text"),
            ("/join", "which channel? /join ID"),
            ("/goto", "where to? /goto TIME | MESSAGE"),
            (
                "/goto yesterday",
                "a time must be like 2026-03-02T09:05:00Z, or 2026-03-02 for its start in UTC: /goto TIME | MESSAGE"
            ),
            (
                "/goto 2026-02-31",
                "a time must be like 2026-03-02T09:05:00Z, or 2026-03-02 for its start in UTC: /goto TIME | MESSAGE"
            ),
            ("/goto 5 6", "Unexpected argument: 6. Usage: /goto TIME | MESSAGE"),
            ("/join a b", "Unexpected argument: b. Usage: /join ID"),
            ("/join a/b", "A channel's id must not contain control characters, '/' or ',': /join ID"),
            ("/create", "which channel? /create ID [--type TYPE] [USER …]"),
            ("/create a --type", "--type needs a word after it: /create ID [--type TYPE] [USER …]"),
            ("/create a --kind group", "--kind isn't an option here: /create ID [--type TYPE] [USER …]"),
            (
                "/create a --type Group",
                "The type must contain only a to z, 0 to 9, '-' and '_': /create ID [--type TYPE] [USER …]"
            ),
            ("/invite", "which users? /invite USER … [-- WELCOME]"),
            ("/invite -- welcome", "which users? /invite USER … [-- WELCOME]"),
            ("/invite bob,cat", "A user's id must not contain control characters, '/' or ',': /invite USER … [-- WELCOME]"),
            ("/accept a b", "Unexpected argument: b. Usage: /accept [ID]"),
            ("/leave now", "Unexpected argument: now. Usage: /leave"),
            ("/hide --archived", "--archived isn't an option here: /hide [--archive] [--clear]"),
            ("/list all", "Unexpected argument: all. Usage: /list [hidden]"),
            ("/read", "which channels? /read all"), ("/read team", "which channels? /read all"),
            ("/read all now", "Unexpected argument: now. Usage: /read all"),
            ("/help me", "me isn't a command: /help [COMMAND]"),
            ("/help join me", "Unexpected argument: me. Usage: /help [COMMAND]"),
        ])
    func mistakes(typed: String, reason: String) {
        #expect(ChatLine(typed) == .refused(reason))
    }

    @Test("the help of /goto says that days are those of UTC")
    func days() { #expect(ChatHelp.lines(of: .goto).contains { $0.contains("days in UTC") }) }

    @Test("the help of /hide says how long the channel stays hidden")
    func hiding() {
        let help = ChatHelp.lines(of: .hide).joined()
        #expect(["until its next message", "with --archive until /unhide", "for good"].filter { !help.contains($0) } == [])
    }

    @Test("every command in the help exists, and needs no more than it says")
    func helpIsComplete() {
        let wrong = ChatHelp.commands.flatMap { [$0.name.rawValue] + $0.aliases }.filter { name in
            if case .refused(let reason) = ChatLine("/\(name)") { !reason.contains("? /\(name) ") } else { false }
        }
        #expect(wrong == [])
        #expect(
            ChatHelp.commands.map(\.name).sorted { $0.rawValue < $1.rawValue }
                == ChatCommandName.allCases.sorted { $0.rawValue < $1.rawValue })
    }
}
