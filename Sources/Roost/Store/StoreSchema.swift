import GRDB
import RoostAPI

extension Store {
    /// Identifies the format of the cache. The tables themselves follow from ``schema(_:)``.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        for earlier in ["1", "2", "3", "4", "5"] { migrator.registerMigration(earlier) { _ in } }
        migrator.registerMigration("6") { try $0.execute(sql: "CREATE TABLE cache_schema (sql TEXT NOT NULL)") }
        return migrator
    }

    /// Creates the tables unless they already match this version.
    ///
    /// A cache is never migrated to another schema, whether a kind of rows or a column was added: it is dropped and fetched again.
    static func prepare(_ database: Database, _ kinds: CachedRowKinds) throws {
        guard try !isPrepared(database, kinds) else { return }
        try makeTables(in: database, kinds)
    }

    /// Whether the tables match this version.
    static func isPrepared(_ database: Database, _ kinds: CachedRowKinds) throws -> Bool {
        guard try database.value("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'cache_schema')") == true else {
            return false
        }
        return try database.value("SELECT sql FROM cache_schema") == schema(kinds)
    }

    /// Drops the cached data and recreates the tables.
    static func makeTables(in database: Database, _ kinds: CachedRowKinds) throws {
        let tables = try String.fetchAll(
            database,
            sql: """
                SELECT name FROM sqlite_schema
                WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN ('grdb_migrations', 'cache_schema')
                """)
        for table in tables { try database.execute(sql: "DROP TABLE \(table)") }
        let schema = schema(kinds)
        try database.execute(sql: schema)
        try database.execute(sql: "DELETE FROM cache_schema")
        try database.execute(sql: "INSERT INTO cache_schema (sql) VALUES (?)", arguments: [schema])
    }

    /// The schema. Models are stored in columns (``CacheColumns``), with additional ones to search or sort by; a few that are only read as a whole
    /// are JSON. Rows of features have their own tables.
    ///
    /// It ends with what the tables don't show: the names of permissions, which stored capabilities use, the version of the keys of names, and the fields and
    /// values of rows. A version that has others fetches again what the former one skipped, or stored without what it didn't know.
    static func schema(_ kinds: CachedRowKinds) -> String {
        streams + Overlay.schema + Channel.cacheSchema + kinds.schema
            + "\n-- Permissions: \(Permission.allCases.map(\.rawValue).joined(separator: " "))"
            + "\n-- Keys of names: \(NameKey.version)"
            + fields(of: kinds)
    }

    private static func fields(of kinds: CachedRowKinds) -> String {
        func line<Row: Decodable>(of row: Row.Type, named name: String) -> String {
            "\n-- Fields of \(name): \((try? Schema.of(row))?.names ?? "")"
        }
        return line(of: Channel.self, named: "channels") + kinds.all.map { line(of: $0, named: $0.kind) }.joined()
    }

    /// The visitor is the store that follows a channel the user isn't a member of (``StoreWrite/visit(_:_:)``); null for the user's own channels. The
    /// generation of a position changes when the channel starts over, so no reader continues from earlier rows.
    private static let streams = """
        CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), epoch TEXT, role TEXT, user_cursor INTEGER NOT NULL);
        INSERT INTO state (id, user_cursor) VALUES (1, 0);
        CREATE TABLE positions (
            channel_id TEXT PRIMARY KEY NOT NULL, cursor INTEGER NOT NULL, window_start INTEGER NOT NULL,
            message_count INTEGER, has_hole INTEGER NOT NULL, has_ended INTEGER NOT NULL, stretches TEXT, visitor INTEGER,
            generation INTEGER NOT NULL
        ) WITHOUT ROWID;
        """
}

extension Schema {
    /// The names of an object's members, and the values of enumerations, at any depth.
    fileprivate var names: String {
        switch self {
        case .object(_, let fields): "(" + fields.map { $0.name + $0.schema.names }.joined(separator: " ") + ")"
        case .enumeration(let values): "<" + values.joined(separator: " ") + ">"
        case .array(let element), .map(let element): element.names
        case .string, .integer, .number, .boolean, .any: ""
        }
    }
}
