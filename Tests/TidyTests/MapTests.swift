import Foundation
import RoostAPI
import RoostCore
import Testing

/// The rules of ARCHITECTURE.md that the compiler can't check.
@Suite("The map")
struct MapTests {
    /// The modules that each target may import, besides NIO if it is named.
    private static let imports: [String: Set<String>] = [
        "RoostAPI": ["Foundation"],
        "RoostCore": ["RoostAPI", "Foundation", "Crypto"],
        "RoostDatabase": [
            "RoostAPI", "RoostCore", "Foundation", "Dispatch", "Synchronization", "GRDB", "GRDBSQLite", "CPageVFS", "CPostgres",
        ],
        "RoostServer": [
            "RoostAPI", "RoostCore", "RoostDatabase", "Foundation", "Dispatch", "Synchronization", "Logging", "NIO", "Hummingbird",
            "HummingbirdCore", "HTTPTypes", "JWTKit", "Crypto", "Metrics", "CoreMetrics", "ServiceLifecycle", "CNATS",
        ],
        // Synchronization needs iOS 18. Modules that only Apple's systems have are imported if they can be.
        "Roost": [
            "RoostAPI", "Foundation", "FoundationNetworking", "Dispatch", "Observation", "Logging", "GRDB", "GRDBSQLite", "NIO",
            "Network",
        ],
        "RoostTesting": ["RoostAPI", "RoostServer", "Roost", "Foundation", "Synchronization", "Logging", "ServiceLifecycle"],
        // It fills data directories itself, measures the rules and the driver besides the server, and watches live objects like an app.
        "RoostBench": [
            "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer", "Roost", "CEpoll", "Foundation", "Observation",
            "Synchronization", "Logging", "CoreMetrics", "NIO", "GRDBSQLite",
        ],
        "RoostCommand": [
            "RoostAPI", "RoostServer", "RoostBench", "Roost", "Foundation", "Dispatch", "Synchronization", "Logging", "NIO",
            "GRDBSQLite",
            "ArgumentParser", "Configuration", "ServiceLifecycle", "UnixSignals", "CoreMetrics",
        ],
    ]

    /// The C library goes under several names.
    private static let system: Set<String> = ["Glibc", "Musl", "Darwin"]
    private static let systemTargets: Set<String> = ["RoostDatabase", "RoostServer", "RoostCommand"]

    static let features: Set<String> = [
        "Users", "Devices", "Channels", "Members", "Messages", "Threads", "Reactions", "Pins", "Polls", "Mentions", "Reading",
        "Watching", "Moderation", "Communities", "Files", "Search", "Notifications", "Permissions", "Effects",
    ]

    /// Code that belongs to no feature is in a folder named for its job. Targets not named here are free.
    private static let jobs: [String: Set<String>] = [
        "RoostAPI": ["Wire", "Streams"], "RoostCore": ["Kernel", "Migrations", "Streams"], "RoostDatabase": [],
        "Roost": ["Connection", "Live", "Store", "Sync", "Roost.docc"],
    ]

    @Test("every target imports what the map allows it, and nothing else")
    func importsByTarget() {
        var wrong: [String] = []
        for file in SourceFile.sources {
            // Regular expressions are slow in a debug build.
            for line in file.codeLines where line.contains("import ") {
                guard
                    let match = line.firstMatch(
                        of:
                            /^\s*(?:@\w+(?:\(\w+\))?\s+)*(?:(?:public|package|internal|private)\s+)?import\s+(?:(?:struct|class|enum|func|protocol|var|typealias)\s+)?(\w+)/
                    )
                else { continue }
                let module = String(match.1)
                let name = module.hasPrefix("NIO") ? "NIO" : module
                if Self.imports[file.target]?.contains(name) == true { continue }
                if Self.system.contains(name), Self.systemTargets.contains(file.target) { continue }
                wrong.append("\(file.path): \(module)")
            }
        }
        #expect(wrong == [])
    }

    @Test("every folder is a feature's or a job's")
    func folders() {
        let wrong = SourceFile.sources.filter { file in
            guard let jobs = Self.jobs[file.target], let folder = file.folders.first else { return false }
            return !Self.features.contains(folder) && !jobs.contains(folder)
        }
        #expect(wrong.map(\.path) == [])
    }

    /// The folder that each table belongs to, and the tables of others that the statements of a folder read.
    struct Tables: Sendable {
        let target: String
        /// A part of the paths of the files that create the tables; empty for any.
        let schema: String
        let owners: [String: String]
        let readsOfOthers: [String: Set<String>]

        /// Matches of a pattern with a table's name in the statements besides the schema, for tables of other folders.
        func foreign(_ pattern: Regex<(Substring, Substring)>) -> [(file: SourceFile, folder: String, table: String)] {
            SourceFile.sources.filter { $0.target == target && !$0.path.contains("RoostCore/Migrations/") }.flatMap { file in
                let isComment: (Substring) -> Bool = { $0.trimmingPrefix(while: { $0 == " " }).hasPrefix("//") }
                let statements = file.lines.filter { !isComment($0) }.joined(separator: "\n")
                let folder = file.folders.first ?? ""
                let tables = statements.matches(of: pattern).map { String($0.1) }.filter { owners[$0] != folder }
                return tables.map { (file: file, folder: folder, table: $0) }
            }
        }

        var made: [String] {
            let texts = SourceFile.sources.filter { $0.target == target && (schema.isEmpty || $0.path.contains(schema)) }.map(
                \.text)
            let names = texts.flatMap { $0.matches(of: /CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+)/).map { String($0.1) } }
            let renamed = texts.flatMap { $0.matches(of: /ALTER TABLE ([a-z_]+) RENAME TO ([a-z_]+)/).map { ($0.1, $0.2) } }
            return names.map { name in renamed.first { $0.0 == name }.map { String($0.1) } ?? name }
        }
    }

    static let server = Tables(
        target: "RoostCore", schema: "RoostCore/Migrations/",
        owners: [
            "access_revisions": "Users", "channel_heads": "Streams", "channel_names": "Channels", "channel_tags": "Channels",
            "channel_types": "Channels", "channels": "Channels", "devices": "Devices", "effects": "Effects",
            "operation_keys": "Kernel",
            "idempotency_keys": "Channels", "channel_mentions": "Messages", "mentions": "Messages",
            "message_versions": "Messages", "own_deletions": "Messages", "drafts": "Messages", "invitations": "Members",
            "members": "Members", "messages": "Messages", "migrations": "Migrations", "name_grams": "Kernel",
            "name_skeletons": "Kernel",
            "purged_counts": "Messages", "purged_messages": "Messages", "revoked_tokens": "Users", "roles": "Members",
            "sent_counts": "Reading", "settings": "Kernel",
            "user_heads": "Streams", "user_activity": "Users", "users": "Users",
        ],
        // Exceptions where two statements instead of a join would read a row for each row.
        readsOfOthers: [
            // One statement finds a caller's permissions in a channel, and lists of channels are lists of memberships with counters.
            "Channels": ["channel_heads", "members"],
            // A scope locks streams before an operation begins.
            "Kernel": ["channel_heads", "user_heads"],
            // Members are listed with their profiles and when they were last online; memberships of deleted channels don't count.
            // A user who rejoins is mentioned by the newest message that they can see.
            "Members": ["channel_heads", "mentions", "user_activity", "users"],
            // Drafts in deleted channels aren't among changes.
            "Messages": ["channel_heads"],
            // One statement finds who gets a push for a message, among members who aren't deactivated.
            "Notifications": ["members", "users"],
            // The unread count is the difference between a membership and its channel's counters, less messages purged after it.
            // Users who don't share their reading are left out of the readers.
            "Reading": ["channel_heads", "members", "messages", "purged_counts", "purged_messages", "users"],
            // A user follows the streams of the channels that they are a member of.
            "Streams": ["members"],
            // The answer has some members with their read positions, if they share these.
            "Watching": ["members", "users", "channel_heads"],
        ])

    static let client = Tables(
        target: "Roost", schema: "",
        owners: [
            "cache_schema": "Store", "capabilities": "Channels", "channel_mentions": "Messages", "channel_attributes": "Channels",
            "channels": "Channels",
            "invitations": "Members", "members": "Members", "memberships": "Members", "messages": "Messages",
            "opened_channels": "Messages", "operations": "Store", "outbox": "Store", "outbox_state": "Store", "overlays": "Store",
            "own_deletions": "Messages", "drafts": "Messages",
            "positions": "Store", "preferences": "Users", "purged": "Messages", "state": "Store",
            "users": "Users",
        ],
        readsOfOthers: [
            // A row of a channel list is one statement; lists of channels are lists of memberships with counters. The newest message is one of
            // the window, given by the position, with the user's unsent changes.
            "Channels": ["invitations", "memberships", "messages", "overlays", "positions", "users"],
            // A membership counts later messages, up to where the channel is followed. An overlay keeps the server's state of it.
            "Members": ["messages", "overlays"],
            // A user doesn't see messages from before their history floor, nor those that they are concealing; older ones than the window are
            // the server's. Messages are shown with their senders.
            "Messages": ["memberships", "overlays", "positions", "users"],
            // Rows about a message follow the message. Unsent changes are shown over a membership, with what they leave unread.
            "Store": ["memberships", "messages", "purged"],
            // Users stay as long as something names them.
            "Users": ["invitations", "members", "messages"],
        ])

    @Test(
        "statements write only the tables of their own folder, and read those of others where the map says so",
        arguments: [server, client])
    func tablesByFolder(tables: Tables) throws {
        #expect(Set(tables.made) == Set(tables.owners.keys))

        let writes = tables.foreign(/\b(?:INSERT INTO|INSERT OR REPLACE INTO|UPDATE|DELETE FROM)\s+([a-z_]+)/)
        #expect(writes.map { "\($0.file.path) writes \($0.table)" } == [])

        // A name that isn't a table's is that of a subquery.
        let reads = tables.foreign(/\b(?:FROM|JOIN)\s+([a-z_]+)/).filter { tables.owners[$0.table] != nil }
        let found = Dictionary(grouping: reads, by: \.folder).mapValues { Set($0.map(\.table)) }
        #expect(found == tables.readsOfOthers)
    }

    @Test("nothing is called Utils, Helpers, Common or Manager")
    func namesForJobs() {
        let wrong = (SourceFile.sources + SourceFile.tests).filter { file in
            file.parts.contains {
                $0.contains(/^(Util|Helper|Common|Manager|Misc|Shared)s?(\.swift)?$|(Manager|Helpers?|Utils?)\.swift$/)
            }
        }
        #expect(wrong.map(\.path) == [])
    }

    @Test("the rules are deterministic: no clock, no randomness, no threads of their own")
    func deterministicCore() {
        let pattern =
            /\bDate\(|\bDate\.now|\bUUID\(|\.random\b|\.randomElement|\.shuffled?\(|\bThread\b|\basync\b|\bawait\b|sleep\(|RandomNumberGenerator|\bDispatch|\bTask\b|Clock\b|\bProcessInfo|\bMutex\b|\bAtomic\b|gettimeofday|\btime\(|\bactor\s+\w/
        let wrong = SourceFile.sources.filter { $0.target == "RoostCore" }.flatMap { $0.places(of: pattern) }
        #expect(wrong == [])
    }

    @Test("nothing in the sources ends the process because a value is missing")
    func noForce() {
        let wrong = SourceFile.sources.flatMap { $0.places(of: /[\w\)\]\}>?]!(?!=)|\bfatalError\b/) }
        #expect(wrong == [])
    }

    @Test("no unsafe annotations in SDK, rules and language; elsewhere each says why on its line")
    func noUnsafe() {
        let pattern = /@unchecked\s+Sendable|nonisolated\(unsafe\)/
        let strict: Set<String> = ["Roost", "RoostCore", "RoostAPI"]
        let wrong = SourceFile.sources.flatMap { file in
            file.places(of: pattern) { line in !strict.contains(file.target) && line.contains("//") }
        }
        #expect(wrong == [])
    }

    @Test("a statement of SQL is a literal: no string made at run time becomes one")
    func sqlIsLiteral() {
        let wrong = SourceFile.sources.filter { ["RoostCore", "RoostDatabase"].contains($0.target) }.flatMap { file in
            file.places(of: /\bSQL\(|\.text\s*\+=|SQL\.init/) { _ in file.path.hasSuffix("Kernel/SQL.swift") }
        }
        #expect(wrong == [])
        // GRDB's own calls take strings: in the driver only literals without interpolated values, and the text of the type SQL.
        let driver = SourceFile.sources.filter { $0.target == "RoostDatabase" }.flatMap { file in
            file.places(of: /\bsql:/) { line in
                line.contains(/sql: "[^\\"]*"/) || line.contains("sql: sql.text") || line.contains(/sql: (RoostCore\.)?SQL\b/)
            }
        }
        #expect(driver == [])
    }

    @Test("data from the bus is never stored: nothing that reads it writes to the database")
    func busIsNotStored() {
        let wrong = SourceFile.sources.filter { $0.path.hasPrefix("Sources/RoostServer/Cluster/") }.flatMap { file in
            file.places(of: /\bWriteTransaction\b|\.write\(lane\b|\.submit\(write\b/)
        }
        #expect(wrong == [])
    }

    @Test("every declared operation is listed, and every listed one has a behaviour")
    func operationsAreListed() {
        var declared: Set<String> = []
        for file in SourceFile.sources where file.target == "RoostAPI" {
            for match in file.code.matches(of: /\bstruct\s+(\w+)\s*:[^{]*\bOperation\b[^{]*\{/) { declared.insert(String(match.1)) }
        }
        let listed = Set(Operations.all.map { "\($0)" })
        #expect(declared == listed)
        #expect(Operations.all.count == listed.count)
        #expect(OperationTable.handled.count == Operations.all.count)
    }

    @Test("docs/protocol.md names every operation, event, error code and close code")
    func protocolIsComplete() throws {
        let text = try String(contentsOf: SourceFile.root.appending(path: "docs/protocol.md"), encoding: .utf8)
        let names = Operations.all.map { $0.name } + Event.Kind.allCases.map(\.rawValue) + RoostError.Code.allCases.map(\.rawValue)
        let missing =
            names.filter { !text.contains("`\($0)`") }
            + CloseCode.allCases.map { "\($0.rawValue)" }.filter { !text.contains("| \($0) |") }
        #expect(missing == [])
    }
}
