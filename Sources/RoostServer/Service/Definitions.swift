package import Foundation
import RoostAPI
import RoostCore
import RoostDatabase

/// The operator's own channel types and roles, from a file (ledger §8.2, §8.4):
///
///     {
///       "types": [{"type": "announcements", "basedOn": "community", "policy": {"send": "operators"}}],
///       "roles": [{"role": "guide", "rank": 10, "permissions": ["member.remove"]}]
///     }
///
/// Each entry has the fields of ``PutChannelType`` or ``PutRole`` and is refused for the same reasons. Definitions that are in the database
/// but not in the file stay, so that no channel loses its type.
package struct Definitions: Sendable {
    private struct Entry {
        /// `types[0] (announcements)`
        let place: String
        let operation: any Handled
    }

    private let file: URL
    private let entries: [Entry]

    /// Reads and checks a file.
    ///
    /// - Throws: ``Unusable``, which names the file, the entry and the field.
    package init(file: URL) throws {
        self.file = file
        entries = try Self.entries(of: file)
    }

    /// Tries a file on a new, empty database, without changing anything else.
    ///
    /// - Throws: ``Unusable``; `DatabaseFailure` when there is no room for the database.
    package static func examine(file: URL) throws {
        let definitions = try Definitions(file: file)
        let directory = FileManager.default.temporaryDirectory.appending(path: "roost-examination-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        _ = try definitions.put(into: SQLiteDatabase(directory: directory), options: AppOptions(), patience: .zero)
    }

    private static func entries(of file: URL) throws -> [Entry] {
        func refusal(_ place: String, _ reason: String) -> Unusable { Unusable(path: file.path, place: place, reason: reason) }
        let lists: [String: JSONValue]
        do { lists = try StrictFile.object(in: file) } catch { throw Unusable(path: file.path, error) }
        let kinds: [(list: String, operation: any Handled.Type, name: String)] = [
            ("types", PutChannelType.self, "type"), ("roles", PutRole.self, "role"),
        ]
        for key in lists.keys.sorted() where !kinds.contains(where: { $0.list == key }) {
            throw refusal("", "the key \(key) is unknown. Known: types, roles.")
        }
        return try kinds.flatMap { kind in
            guard let list = lists[kind.list] else { return [Entry]() }
            guard case .array(let values) = list else { throw refusal(kind.list, "it must be an array.") }
            guard let entry = OperationTable.named(kind.operation.name) else { throw refusal(kind.list, "it isn't known here.") }
            var names: Set<JSONValue> = []
            return try values.enumerated().map { number, value in
                let name = value[kind.name] ?? .null
                let place =
                    if case .string(let text) = name { "\(kind.list)[\(number)] (\(text))" } else { "\(kind.list)[\(number)]" }
                guard names.insert(name).inserted else { throw refusal(place, "field \(kind.name): another entry has the same.") }
                do {
                    return Entry(place: place, operation: try entry.decode(from: Data(try JSONWriter.bytes(of: value))))
                } catch {
                    throw Unusable(path: file.path, place: place, refusal: RoostError(decoding: error))
                }
            }
        }
    }

    /// Puts all of them into the database, or none, as an admin would.
    ///
    /// - Parameter patience: How long other nodes' transactions may hold the locks before the start is given up. Each attempt waits for a second,
    ///   as an operation that changes the rules does.
    /// - Returns: Whether a rule changed, which means that the other nodes have to be notified.
    func put(into database: any Database, options: AppOptions, patience: Duration) throws -> Bool {
        guard !entries.isEmpty else { return false }
        let started = ContinuousClock.now
        while true {
            do {
                return try put(into: database, options: options)
            } catch let failure as DatabaseFailure where failure.kind == .locked {
                guard ContinuousClock.now - started < patience else {
                    throw DatabaseFailure(
                        message:
                            "The channel types of \(file.path) couldn't be stored, since other transactions held the locks that "
                            + "they need for longer than --lock-timeout. \(failure.message)", kind: .locked)
                }
            }
            // The pause lets the writers continue that are queued behind an attempt.
            Thread.sleep(forTimeInterval: DeferredJobs.retryInterval / .seconds(1))
        }
    }

    private func put(into database: any Database, options: AppOptions) throws -> Bool {
        try database.write(lane: 0) { transaction in
            var hasChanged = false
            // Other nodes may be running: nothing commits under the old rules after this.
            for statement in transaction.dialect.accessLock?.exclusive ?? [] { try transaction.perform(statement) }
            for entry in entries {
                var context = Context(
                    transaction: transaction, caller: .server, now: .now, ids: IDGenerator(), options: options,
                    scope: entry.operation.scope(for: .server))
                do {
                    _ = try entry.operation.handle(in: &context)
                } catch let refusal as RoostError {
                    throw Unusable(path: file.path, place: entry.place, refusal: refusal)
                }
                for case .rulesChanged in context.notices { hasChanged = true }
            }
            return hasChanged
        }
    }

    /// The file can't be used as it is; the server doesn't start with it.
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String

        fileprivate init(path: String, _ refusal: StrictFile.Refusal) {
            description = "The channel types of \(path) \(refusal)"
        }

        fileprivate init(path: String, place: String, reason: String) {
            description = "The channel types of \(path) can't be used: \(place.isEmpty ? "" : "\(place), ")\(reason)"
        }

        fileprivate init(path: String, place: String, refusal: RoostError) {
            self.init(
                path: path, place: place, reason: (refusal.field.map { "field \($0): " } ?? "") + refusal.message)
        }
    }
}
