import ArgumentParser
import Foundation
import Testing

@testable import RoostCommand

/// A setting that is declared but not used would be shown, and change nothing.
@Suite struct SettingTests {
    private func settings(_ arguments: [String]) async throws -> Settings {
        try await Settings.load(try SettingFlags.parse(arguments), standardData: "/nowhere/roost-data", environment: [:])
    }

    /// A valid value of a setting, other than its default.
    private func otherValue(of setting: Setting) -> String {
        switch (setting.kind, setting.standard) {
        case (.text, _): "/nowhere/other"
        case (.origins, _): "https://app.example.com"
        case (.networks, _): "10.0.0.0/8"
        case (.choice(let choices), let standard): choices.first { Setting.Value.text($0) != standard } ?? ""
        case (.whole(let range), let standard), (.wholeOrNone(let range), let standard):
            "\(standard == Setting.Value.whole(range.upperBound) ? range.lowerBound : range.upperBound)"
        case (.flag, let standard): "\(standard != Setting.Value.flag(true))"
        // A little more, since the idle timeout has to stay longer than the ping interval.
        case (.seconds, .seconds(let standard)): "\(standard + 1)"
        case (.seconds, _): ""
        }
    }

    /// The fields of a value, as text.
    private func fields(of value: Any) -> [String: String] {
        Dictionary(uniqueKeysWithValues: Mirror(reflecting: value).children.map { ($0.label ?? "", "\($0.value)") })
    }

    @Test("every setting has a flag, and changes one thing about the server", arguments: Setting.all.map(\.name))
    func reachesTheServer(name: String) async throws {
        let setting = try #require(Setting.all.first { $0.name == name })
        let value = otherValue(of: setting)
        #expect(try SettingFlags.parse(["--\(name)", value]).given == [name: value])

        let given = try await settings(["--\(name)", value])
        let origin = given.all.first { $0.setting.name == name }?.origin
        #expect(origin == SettingSources.Origin.flag(name))
        // The log level is applied before there is a server.
        guard name != Setting.logLevel.name else { return }
        let standard = fields(of: try await settings([]).server)
        let changed = fields(of: given.server).filter { standard[$0.key] != $0.value }
        #expect(changed.count == 1, "\(changed.keys.sorted())")
    }

    /// The settings of a configuration file with the text.
    private func settings(file text: String) async throws -> Settings {
        let file = FileManager.default.temporaryDirectory.appending(path: "roost-settings-\(UUID().uuidString).json")
        try Data(text.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try await settings(["--config", file.path])
    }

    @Test(
        "a value in the configuration file must have its setting's JSON type: true isn't 1, and 2 isn't true",
        arguments: [
            ("undeletion", "true"), ("message-versions", "true"), ("port", "true"), ("memory-limit", "false"),
            ("drain-window", "true"), ("mention-all", "2"), ("mention-all", "0.5"), ("history-for-new-members", "1"),
            ("port", #"{"x": 1}"#),
        ])
    func typesInTheFile(name: String, value: String) async throws {
        let setting = try #require(Setting.all.first { $0.name == name })
        let refusal = await #expect(throws: Failure.self) { try await settings(file: #"{"\#(name)": \#(value)}"#) }
        #expect(refusal?.description.hasPrefix("\(name) \(setting.kind.typeRequirement)") == true, "\(refusal?.description ?? "")")
    }

    @Test("the configuration file takes whole numbers for seconds, and true and false for flags")
    func valuesInTheFile() async throws {
        let settings = try await settings(file: #"{"drain-window": 2, "idle-timeout": 90.5, "mention-all": true, "port": 8081}"#)
        #expect(settings.seconds(.drainWindow) == .seconds(2) && settings.seconds(.idleTimeout) == .milliseconds(90_500))
        #expect(settings.flag(.mentionAll) && settings.whole(.port) == 8081)
    }

    @Test("the configuration file that README.md shows is accepted")
    func fileOfThePage() async throws {
        let page = try #require(DocumentPage.all.first { $0.path == "README.md" })
        let file = try #require(page.text.firstMatch(of: /\n```json\n(\{[^`]+\})\n```\n/))
        let given = try await settings(file: String(file.1))
        #expect(given.seconds(.drainWindow) == .seconds(10) && !given.flag(.historyForNewMembers))
        #expect(given.text(.trustedProxies) == "10.0.0.0/8,::1")
    }

    @Test("every amount of memory or time is shown with its unit")
    func units() async throws {
        let entries = try await settings([]).all
        let amounts = entries.filter { entry in
            if case .seconds = entry.setting.kind { return true }
            return ["MiB", "Seconds", "in seconds"].contains { entry.setting.help.contains($0) }
        }
        let shown = Dictionary(uniqueKeysWithValues: amounts.map { ($0.setting.name, $0.shownWithUnit) })
        #expect(shown.values.filter { !$0.hasSuffix(" s") && !$0.hasSuffix(" MiB") } == [])
        #expect(shown["memory-budget"] == "24 MiB" && shown["undeletion"] == "0 s" && shown["drain-window"] == "5 s")
        #expect(entries.first { $0.setting.name == "port" }?.shownWithUnit == "8080")
    }

    @Test("the help of each setting that nodes compare says that all need the same, and docs/operations/cluster.md names it")
    func sharedSettings() throws {
        let path = "../../../../Sources/RoostServer/Service/StartChecks.swift"
        let checks = try String(contentsOf: URL(filePath: #filePath).appending(path: path).standardized, encoding: .utf8)
        let names = Set(checks.matches(of: /SharedSetting\(\s*name: "([a-z-]+)"/).map { String($0.1) })
        // Of the bus only whether there is one is compared.
        let shared = Setting.all.filter { names.contains($0.name) && $0.name != "bus" }
        #expect(shared.count >= 12)
        #expect(shared.filter { !$0.help.contains(/The same (?:keys )?on all nodes/) }.map(\.name) == [])
        let page = try #require(DocumentPage.all.first { $0.path == "docs/operations/cluster.md" })
        #expect(shared.filter { !page.text.contains("`--\($0.name)`") }.map(\.name) == [])
    }

    @Test("every setting is on a page, named by its flag")
    func isInPages() {
        // The benchmark has its own options.
        let pages = DocumentPage.all.filter { $0.path != "docs/performance.md" }
        let words = Set(pages.flatMap { page in page.text.split { $0 != "-" && !$0.isLetter }.map(String.init) })
        #expect(words.count > 1000)
        #expect(Setting.all.map(\.name).filter { !words.contains("--\($0)") } == [])
    }
}
