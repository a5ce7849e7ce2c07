public import Foundation
public import RoostCore
public import RoostDatabase

/// A database for a single test, on the engine that the tests run on: SQLite, or PostgreSQL if the environment has
/// `ROOST_TEST_DATABASE=postgresql`.
public final class TestDatabase {
    /// The engine that the tests run on.
    public enum Engine: String, Sendable {
        case sqlite, postgresql

        public static let chosen: Engine = {
            let name = ProcessInfo.processInfo.environment["ROOST_TEST_DATABASE"] ?? "sqlite"
            guard let engine = Engine(rawValue: name) else { preconditionFailure("ROOST_TEST_DATABASE is sqlite or postgresql.") }
            return engine
        }()

        /// The names of the existing tables.
        public var tableNames: SQL {
            switch self {
            case .sqlite: "SELECT name FROM sqlite_master WHERE type = 'table'"
            case .postgresql: "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            }
        }
    }

    /// The directory of SQLite's file or the URL of PostgreSQL's database.
    private enum Place {
        case directory(URL)
        case url(String)
    }
    private let place: Place
    /// Whether it still contains rows of another test.
    private var isUsed = false

    public init() throws {
        switch Engine.chosen {
        case .sqlite: place = .directory(TemporaryPlace.make())
        case .postgresql:
            #if Cluster
            let used = try PostgreSQLServer.shared.takeUsedDatabase()
            isUsed = used != nil
            place = .url(try used ?? PostgreSQLServer.shared.makeNewDatabase())
            #else
            throw Missed("PostgreSQL: these tests were built without the trait Cluster")
            #endif
        }
    }

    /// A copy of a database that another version wrote: `roost.sqlite` and `roost.state` in a folder, or `postgresql.sql`.
    public init(copying folder: URL) throws {
        switch Engine.chosen {
        case .sqlite:
            let directory = TemporaryPlace.make()
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            for file in ["roost.sqlite", "roost.state"] {
                try FileManager.default.copyItem(at: folder.appending(path: file), to: directory.appending(path: file))
            }
            place = .directory(directory)
        case .postgresql:
            #if Cluster
            let dump = try String(contentsOf: folder.appending(path: "postgresql.sql"), encoding: .utf8)
            place = .url(try PostgreSQLServer.shared.makeDatabase(from: dump))
            #else
            throw Missed("PostgreSQL: these tests were built without the trait Cluster")
            #endif
        }
    }

    /// Opens it as a starting server does. Earlier users of it have to be gone.
    public func open() throws -> any RoostDatabase.Database {
        switch place {
        case .directory(let directory):
            try TemporaryPlace.waitUntilFree(directory)
            return try SQLiteDatabase(directory: directory, acceptsDataLoss: false, base: nil, checksMemory: true)
        case .url(let url):
            #if Cluster
            if isUsed { try empty(url) }
            return try PostgreSQLDatabase(url: url)
            #else
            throw Missed("PostgreSQL at \(url.count) letters: these tests were built without the trait Cluster")
            #endif
        }
    }

    #if Cluster
    /// Empties a database over its own connection: there are a thousand tests, and a process for it takes longer than many of them.
    private func empty(_ url: String) throws {
        isUsed = false
        guard let database = try? PostgreSQLDatabase(url: url, laneCount: 1, readerCount: 1) else {
            // A test may have left an unknown migration.
            return try PostgreSQLServer.shared.empty(url)
        }
        defer { database.close() }
        try database.write(lane: 0) { transaction in
            _ = try transaction.execute(
                """
                DO $$ DECLARE name TEXT; BEGIN
                    FOR name IN SELECT table_name FROM information_schema.tables
                                WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> 'migrations' LOOP
                        EXECUTE format('DELETE FROM %I', name);
                    END LOOP;
                END $$
                """)
        }
    }
    #endif

    deinit {
        switch place {
        case .directory(let directory): try? FileManager.default.removeItem(at: directory)
        case .url(let url):
            #if Cluster
            try? PostgreSQLServer.shared.giveBack(url)
            #else
            _ = url
            #endif
        }
    }
}
