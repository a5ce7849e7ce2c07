import ArgumentParser
import Foundation
import RoostAPI
import RoostServer
import Testing

@testable import RoostCommand

/// Claims in the help of commands.
@Suite struct HelpTextTests {
    /// A command's help as one line.
    private func help(_ command: any ParsableCommand.Type) -> String {
        RoostCommand.helpMessage(for: command, columns: 10_000).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    @Test(
        "the help's claims are true",
        arguments: [
            (Channels.Create.self, "used again within 7 days"), (Channels.Create.self, "--operator <user>"),
            (Channels.Update.self, "If neither is given, unchanged."),
            (Channels.Create.self, "If neither is given, the type decides."),
            (Channels.List.self, "Only channels without this tag. Repeat for"),
            (Channels.Silence.self, "ever, or -1, until it is unsilenced"), (Demo.self, "for roost demo: roost-demo"),
            (Keys.Remove.self, "A removed key can't be brought back"), (CallCommand.self, "need a WebSocket and are refused"),
            (Members.self, "on standard error if it was refused"), (Messages.self, "its sender's id"),
            (Messages.Send.self, "--meta-array <list=value>"), (Messages.Send.self, "(values: text, admin, custom; default: text)"),
            (ChatCommand.self, "--as <user>"), (Serve.self, "In a server that was started in a terminal, SIGHUP does the same"),
            (Token.self, "in every channel, except where a type reserves them for members or admins"),
            (Channels.Silence.self, "for a time or until they are unsilenced."),
        ] as [(any ParsableCommand.Type, String)])
    func claims(command: any ParsableCommand.Type, text: String) {
        #expect(help(command).contains(text))
    }

    @Test("Examples/README.md has a command for every walk")
    func walks() throws {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized
        let manifest = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
        let text = try String(contentsOf: root.appending(path: "Examples/README.md"), encoding: .utf8)
        let names = manifest.matches(of: /as: "(example-[a-z-]+)"/).map { String($0.1) }
        #expect(names.count >= 6 && names.filter { !text.contains("swift run \($0) ") } == [])
    }

    @Test("the channel that a command of Examples/README.md joins is made by an earlier one")
    func channelOfTheTerminalChat() throws {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized
        let text = try String(contentsOf: root.appending(path: "Examples/README.md"), encoding: .utf8)
        let joined = try #require(text.firstMatch(of: /example-terminal-chat http:\S+ \w+ (\S+)/))
        let earlier = text[..<joined.range.lowerBound].matches(of: /roost call channel\.create channel=(\S+)/)
        #expect(earlier.map { String($0.1) } == [String(joined.1)])
    }

    @Test("a key of channel.create is kept for as long as the help says")
    func keyLifetime() { #expect(Limits.idempotencyKeyHours == 7 * 24) }

    @Test("docs/channel-types.md has every option of the whole app, with its default")
    func optionsOfTheApp() async throws {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized
        let text = try String(contentsOf: root.appending(path: "docs/channel-types.md"), encoding: .utf8)
        let standard = try await Settings.load(try SettingFlags.parse([]), standardData: "/nowhere", environment: [:]).server
            .options
        for setting in Setting.all {
            let other: String
            switch setting.kind {
            case .choice(let choices): other = choices.first { .text($0) != setting.standard } ?? ""
            case .whole(let range): other = "\(setting.standard == .whole(range.upperBound) ? range.lowerBound : range.upperBound)"
            case .flag: other = "\(setting.standard != .flag(true))"
            case .text, .origins, .networks, .wholeOrNone, .seconds: continue
            }
            let flags = try SettingFlags.parse(["--\(setting.name)", other])
            let options = try await Settings.load(flags, standardData: "/nowhere", environment: [:]).server.options
            let isOption = options != standard
            #expect(text.contains("| `--\(setting.name)` | \(setting.standard) |") == isOption, "\(setting.name)")
        }
    }
}
