import ArgumentParser
import Foundation
import RoostServer
import Testing

@testable import RoostCommand

/// The commands that a server prints for copying into a shell.
@Suite struct AnnouncementTests {
    @Test(
        "a text that a shell would take for more than a word is quoted",
        arguments: [
            ("roost-data", "roost-data"), ("/srv/Data_1/a.b", "/srv/Data_1/a.b"),
            ("http://127.0.0.1:8081", "http://127.0.0.1:8081"),
            ("a b", "'a b'"), ("a&b;c", "'a&b;c'"), ("a(1)*", "'a(1)*'"), ("\"a\"", "'\"a\"'"), ("$HOME", "'$HOME'"), ("~", "'~'"),
            ("it's", #"'it'\''s'"#), ("Köln", "'Köln'"), ("", "''"),
        ])
    func words(text: String, word: String) {
        #expect(text.shellWord == word)
    }

    @Test("in the commands that a server prints a directory and an address are one word each")
    func commands() async throws {
        let settings = try await Settings.load(try SettingFlags.parse(["--data", "a&b;c"]), environment: [:])
        let address = try #require(URL(string: "http://[::1]:8081"))
        let announcement = Announcement(settings: settings, address: address)
        let commands = announcement.first.filter { $0.hasPrefix("  ") && $0.contains(" ann") }
        #expect(commands.count == 2)
        #expect(commands.first?.hasSuffix(" chat general --as ann --data 'a&b;c' --url 'http://[::1]:8081'") == true)
        #expect(commands.last?.hasSuffix(" token ann --data 'a&b;c'") == true)
    }
}
