import Foundation
import RoostAPI
import RoostCore
import Testing

/// The tables of the documents match the code. Those of operations are covered by `test_interop.py`, that of permissions by
/// `PermissionTableTests`.
@Suite("The tables of the documents")
struct ProtocolTableTests {
    /// Returns the rows of a table as their cells, without its head.
    ///
    /// - Parameter head: The beginning of the table's first line.
    private static func rows(of page: String, in section: String, headed head: String) throws -> [[String]] {
        let text = try String(contentsOf: SourceFile.root.appending(path: page), encoding: .utf8)
        let parts = "\(text)\n".components(separatedBy: "\n## \(section)\n")
        let own = try #require(parts.count == 2 ? parts.last : nil).components(separatedBy: "\n## ")[0]
        let lines = own.components(separatedBy: "\n").drop { !$0.hasPrefix(head) }.prefix { $0.hasPrefix("|") }
        try #require(lines.count > 2, "\(section) of \(page) has no table that begins with \(head)")
        return lines.dropFirst(2).map { line in
            line.dropFirst().dropLast().components(separatedBy: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    private static func words(in cell: String) -> [String] { cell.matches(of: /`([^`]+)`/).map { String($0.1) } }

    private static func numbers(in cell: String) -> [Int] {
        cell.matches(of: /[0-9][0-9,]*/).compactMap { Int($0.0.filter { $0 != "," }) }
    }

    /// Returns a sentence for each name that a document lacks, invents, or repeats.
    private static func differences(of documented: [String], from names: some Sequence<String>) -> [String] {
        let (found, names) = (Set(documented), Set(names))
        let missing = names.subtracting(found).sorted().map { "\($0) is missing" }
        let unknown = found.subtracting(names).sorted().map { "\($0) doesn't exist" }
        let twice = found.filter { name in documented.count { $0 == name } > 1 }.sorted().map { "\($0) is there twice" }
        return missing + unknown + twice
    }

    // MARK: Operations

    @Test("the operations that docs/protocol.md calls read-only are those that are")
    func reads() throws {
        let text = try String(contentsOf: SourceFile.root.appending(path: "docs/protocol.md"), encoding: .utf8)
        let row = /\n\| `([a-zA-Z]+\.[a-zA-Z]+)` \| (?:GET|POST|PUT|PATCH|DELETE) \|[^|\n]*\|[^|\n]*\| (read)? ?\|/
        let rows = text.matches(of: row)
        let documented = rows.map { "\($0.1)\($0.2 == nil ? "" : " reads")" }
        let actual = OperationTable.handled.map { "\($0.name)\($0.isReadOnly ? " reads" : "")" }
        #expect(Self.differences(of: documented, from: actual) == [])
    }

    // MARK: Tokens

    /// A backend that signs tokens without these makes some that a revocation shuts out for good, or that can't be revoked one by one.
    @Test("the article on tokens names claims of docs/protocol.md, iat and jti among them")
    func claims() throws {
        func names(of page: String, in section: String) throws -> Set<String> {
            Set(try Self.rows(of: page, in: section, headed: "| claim |").flatMap { Self.words(in: $0[0]) })
        }
        let shown = try names(of: "Sources/Roost/Roost.docc/Tokens.md", in: "Where they come from")
        let known = try names(of: "docs/protocol.md", in: "Tokens")
        #expect(shown.isSubset(of: known) && shown.isSuperset(of: ["sub", "exp", "iat", "jti"]))
    }

    // MARK: Limits

    /// The numbers of rows that have no name in `config.get`, or one of its options.
    private static let withoutName: [String: [Int]] = [
        "`users` of an answer; of a page, beside each row's first one": [Limits.usersPerChanges],
        "`seconds` of a duration": [1, Limits.durationSeconds, 1],
        "channels of one user": [AppOptions().channelsPerUser, Limits.channelsPerUserMax],
        // One number, as long as the default is the maximum.
        "users that a message mentions by name": Array(Set([AppOptions().mentionsPerMessage, Limits.mentionsPerMessageMax])),
        "`limit` of `effect.listDead`": [1, Limits.effectPage.max, Limits.effectPage.standard],
        "`kind` of `effect.retry`; `key`": [Limits.effectKindLength, Limits.effectKeyLength],
        "`limit` of `stream.channelChanges`, `stream.myChanges`": [1, Limits.changesPage.max, Limits.changesPage.standard],
        "channels that all sockets of one user get, as a member or by watching, added up, on one of a server's event loops for connections":
            [
                Limits.connectionsWithAllChannels * Limits.watchedChannels, Limits.watchedChannels, 4029,
            ],
        "channels named in a resume": [Limits.channelsPerUserMax],
        "changed rows after which the answer to a resume ends": [Limits.resumeRows.max, Limits.resumeRows.first],
        "missed messages of one channel in a resume": [Limits.resumeMessagesPerChannel, Limits.freshMessages],
        "`cursor`": [Limits.cursorLength],
    ]

    @Test("the limits of docs/protocol.md are those of the code, with names and numbers, and no named one is missing")
    func limits() throws {
        let rows = try Self.rows(of: "docs/protocol.md", in: "Limits", headed: "| what | limit | name |")
        #expect(rows.filter { $0.count != 3 } == [])
        var named: Set<String> = []
        var wrong: [String] = []
        for row in rows where row.count == 3 {
            if let numbers = Self.withoutName[row[0]], Self.numbers(in: row[1]) != numbers {
                wrong.append("\(row[0]): not \(numbers)")
            }
            let numbers = Self.numbers(in: row[1])
            for name in Self.words(in: row[2]) where !row[2].contains("the option") {
                guard let limit = Limits.table[name] else {
                    wrong.append("\(name) is no limit of config.get")
                    continue
                }
                // A row can refer to another one's number.
                if numbers.isEmpty { continue }
                named.insert(name)
                let values = row[1].contains("days") ? numbers.map { $0 * 24 } : numbers
                if !values.contains(limit) { wrong.append("\(name) is \(limit), and the table says \(row[1])") }
            }
        }
        #expect(wrong == [])
        #expect(Set(Limits.table.keys).subtracting(named).sorted() == [])
        #expect(Set(Self.withoutName.keys).subtracting(rows.map { $0[0] }).sorted() == [])
    }

    @Test("docs/protocol.md names each of the app's options where it says what config.get returns")
    func options() throws {
        let text = try String(contentsOf: SourceFile.root.appending(path: "docs/protocol.md"), encoding: .utf8)
        let paragraph = try #require(
            text.components(separatedBy: "\n\n").first { $0.hasPrefix("`config.get` returns the named limits") })
        let options = Mirror(reflecting: AppOptions()).children.compactMap(\.label)
        #expect(options.count >= 10)
        #expect(options.filter { !paragraph.contains("`\($0)`") } == [])
    }

    // MARK: Types of channels

    @Test("the table of channel types in docs/protocol.md is that of the presets, with each rule of a policy")
    func types() throws {
        let head = "| | " + ChannelPolicy.presets.map { "`\($0.type.rawValue)`" }.joined(separator: " | ") + " |"
        let rows = try Self.rows(of: "docs/protocol.md", in: "Channel types", headed: head)
        let policies = try ChannelPolicy.presets.map { policy in
            try JSONDecoder().decode(JSONValue.self, from: Data(try JSONWriter.bytes(of: policy)))
        }
        let names = PolicyName.allCases.map(\.rawValue) + ["fixed"]
        #expect(rows == names.map { name in ["`\(name)`"] + policies.map { Self.text(of: $0[name]) } })
    }

    private static func text(of value: JSONValue?) -> String {
        switch value {
        case .string(let text)?: text
        case .boolean(let flag)?: flag ? "yes" : "no"
        case .integer(let number)?:
            number >= 1000 ? "\(number / 1000),\(String("\(1000 + number % 1000)".dropFirst()))" : "\(number)"
        case .array(let names)?:
            if names.isEmpty {
                "–"
            } else if names.count == PolicyName.allCases.count {
                "all"
            } else {
                names.map { text(of: $0) }.joined(separator: ", ")
            }
        default: "nothing"
        }
    }

    // MARK: Errors and close codes

    @Test("the table of errors in docs/protocol.md has each code once, with its status, or – if only the SDK throws it")
    func errors() throws {
        let rows = try Self.rows(of: "docs/protocol.md", in: "Errors", headed: "| code | status |")
        let documented = rows.map { "\(Self.words(in: $0[0]).joined()) \($0[1])" }.sorted()
        let statuses = RoostError.Code.allCases.map { code in
            "\(code.rawValue) \(code.httpStatus.map { "\($0)" } ?? "–")"
        }
        #expect(documented == statuses.sorted())
    }

    // MARK: Effects

    @Test(
        "the kinds of effects in docs/operations/monitoring.md have the code's attempts, and its example is of one that ends"
    )
    func effects() throws {
        let expected = EffectKinds.all.map { kind in
            let attempts = kind.attemptsMax == .max ? "unlimited" : "\(kind.attemptsMax)"
            return "\(kind.name) \(attempts)"
        }
        let page = "docs/operations/monitoring.md"
        let rows = try Self.rows(of: page, in: "Scheduled effects", headed: "| kind |")
        #expect(rows.map { "\(Self.words(in: $0[0]).joined()) \($0[2])" }.sorted() == expected.sorted())
        let text = try String(contentsOf: SourceFile.root.appending(path: page), encoding: .utf8)
        let examples = text.matches(of: /\n([A-Za-z.]+) +\S+ +([0-9]+) +\S+ +[0-9]{4}-[0-9]{2}-[0-9]{2}/)
        let shown = examples.map { "\($0.1) \($0.2)" }
        #expect(!shown.isEmpty && shown.allSatisfy(expected.contains), "\(shown)")
    }

    // MARK: The log

    @Test(
        "each log line listed on a page is one that the server writes",
        arguments: [("docs/operations/monitoring.md", "The log"), ("docs/operations/cluster.md", "What to watch")])
    func log(page: String, section: String) throws {
        let rows = try Self.rows(of: page, in: section, headed: "| line | level |")
        let sources = SourceFile.sources.filter { ["RoostServer", "RoostCommand"].contains($0.target) }.map(\.text)
        let missing = rows.flatMap { Self.words(in: $0[0]) }.filter { line in
            // Dots stand for varying parts, and a line can have a number before its end.
            let parts = line.components(separatedBy: "…").map { $0.trimmingCharacters(in: .init(charactersIn: " .,")) }
            return parts.contains { part in !part.isEmpty && !sources.contains { $0.contains(part) } }
        }
        #expect(missing == [])
    }

    // MARK: roost doctor

    @Test("docs/operations/monitoring.md has a row for every check of roost doctor that can find something wrong")
    func checks() throws {
        let rows = try Self.rows(of: "docs/operations/monitoring.md", in: "roost doctor", headed: "| check |")
        let text = SourceFile.sources.filter { $0.path.hasPrefix("Sources/RoostCommand/Doctor/") }.map(\.text).joined()
        let named = text.matches(of: /Finding\(\s*"([^"]+)",\s*\.(?:warn|fail)/).map { String($0.1) }
        // The name of a check with several findings may precede them.
        let constants = text.matches(of: /let check = "([^"]+)"/).map { String($0.1) }
        #expect(named.count > 20 && !constants.isEmpty)
        #expect(Self.differences(of: rows.flatMap { Self.words(in: $0[0]) }, from: named + constants) == [])
    }

    // MARK: Tables and folders

    @Test(
        "ARCHITECTURE.md, and the division in docs/operations/cluster.md, have all tables and no others",
        arguments: [
            ("ARCHITECTURE.md", "The tables", "| table |"),
            ("docs/operations/cluster.md", "Spreading the tables further", "| tables |"),
        ])
    func tables(page: String, section: String, head: String) throws {
        let rows = try Self.rows(of: page, in: section, headed: head)
        #expect(Self.differences(of: rows.flatMap { Self.words(in: $0[0]) }, from: MapTests.server.owners.keys) == [])
    }

    @Test("ARCHITECTURE.md has a row for every folder of a feature, and names every folder of the server")
    func folders() throws {
        let page = "ARCHITECTURE.md"
        let rows = try Self.rows(of: page, in: "The map", headed: "| feature folder |")
        let features = SourceFile.sources.compactMap(\.folders.first).filter { MapTests.features.contains($0) }
        #expect(Self.differences(of: rows.flatMap { Self.words(in: $0[0]) }, from: features) == [])

        let text = try String(contentsOf: SourceFile.root.appending(path: page), encoding: .utf8)
        let paragraph = try #require(text.components(separatedBy: "\n\n").first { $0.hasPrefix("`RoostServer` has folders") })
        let jobs = Set(SourceFile.sources.filter { $0.target == "RoostServer" }.compactMap(\.folders.first))
        #expect(jobs.filter { !paragraph.contains("`\($0)`") }.sorted() == [])
    }
}
