import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// What the rows of the outbox say, each with the columns that it was decoded from.
///
/// What shows the outbox reads hundreds of rows with every change of it, and nearly all of them are as they were. Comparing their bytes takes a
/// fraction of the time that decoding them does. It keeps a bounded number of bytes: where the rows have more, they are decoded again.
final class DecodedOperations: Sendable {
    /// The columns of a row that are decoded.
    struct Columns: Hashable, Sendable {
        var name: String
        var client: String?
        var fields: Data
        var failure: Data?

        /// With what its place takes.
        fileprivate var sizeBytes: Int { fields.count + (failure?.count ?? 0) + 512 }
    }

    /// What they say.
    struct Content: Hashable, Sendable {
        var operation: OutboxOperation
        var failure: RoostError?

        init(operation: OutboxOperation, failure: RoostError? = nil) { (self.operation, self.failure) = (operation, failure) }

        fileprivate init(decoding columns: Columns) throws {
            operation = try OutboxOperation(columns.name, columns.client.map(ClientID.init(rawValue:)), columns.fields)
            failure = try columns.failure.map { try StoredJSON.decode(from: $0) }
        }
    }

    private struct Kept {
        var columns: Columns
        var content: Result<Content, any Error>
    }

    private struct State {
        var rows: [Int64: Kept] = [:]
        var sizeBytes = 0

        mutating func forget(_ id: Int64) {
            if let former = rows.removeValue(forKey: id) { sizeBytes -= former.columns.sizeBytes }
        }
    }

    /// The most that the columns of all rows may have.
    static let sizeBytesMax = 4 << 20

    private let state = NIOLockedValueBox(State())

    /// Returns what a row says: as it was decoded before, if it has the same bytes.
    ///
    /// - Throws: Why it can't be decoded.
    func content(of id: Int64, _ columns: Columns) throws -> Content {
        if let kept = state.withLockedValue({ $0.rows[id] }), kept.columns == columns { return try kept.content.get() }
        let content = Result<Content, any Error> { try Content(decoding: columns) }
        keep(content, of: id, columns)
        return try content.get()
    }

    /// Keeps what a row says, in the place of what it said before.
    func keep(_ content: Result<Content, any Error>, of id: Int64, _ columns: Columns) {
        state.withLockedValue { state in
            state.forget(id)
            guard columns.sizeBytes <= Self.sizeBytesMax else { return }
            if state.sizeBytes + columns.sizeBytes > Self.sizeBytesMax { state = State() }
            state.rows[id] = Kept(columns: columns, content: content)
            state.sizeBytes += columns.sizeBytes
        }
    }

    /// Forgets rows that aren't in the outbox any more.
    func forget(_ ids: [Int64]) {
        guard !ids.isEmpty else { return }
        state.withLockedValue { state in for id in ids { state.forget(id) } }
    }

    /// Forgets all rows: the outbox has another file.
    func forgetAll() { state.withLockedValue { $0 = State() } }
}
