import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// The decoded rows of the outbox, each with the columns it was decoded from.
///
/// An object that shows the outbox reads hundreds of rows on every change of it, and nearly all are unchanged. Comparing their bytes takes a fraction
/// of the time of decoding them. The number of bytes kept is bounded: if the rows have more, they are decoded again.
final class DecodedOperations: Sendable {
    /// The columns of a row that are decoded.
    struct Columns: Hashable, Sendable {
        var name: String
        var client: String?
        var fields: Data
        var failure: Data?

        /// Including the overhead of an entry.
        fileprivate var sizeBytes: Int { fields.count + (failure?.count ?? 0) + 512 }
    }

    /// The decoded content of a row.
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

    /// The maximum size of the columns of all rows.
    static let sizeBytesMax = 4 << 20

    private let state = NIOLockedValueBox(State())

    /// Returns a row's content: the one decoded before if its bytes are the same.
    ///
    /// - Throws: The error of decoding.
    func content(of id: Int64, _ columns: Columns) throws -> Content {
        if let kept = state.withLockedValue({ $0.rows[id] }), kept.columns == columns { return try kept.content.get() }
        let content = Result<Content, any Error> { try Content(decoding: columns) }
        keep(content, of: id, columns)
        return try content.get()
    }

    /// Keeps a row's content, replacing the former one.
    func keep(_ content: Result<Content, any Error>, of id: Int64, _ columns: Columns) {
        state.withLockedValue { state in
            state.forget(id)
            guard columns.sizeBytes <= Self.sizeBytesMax else { return }
            if state.sizeBytes + columns.sizeBytes > Self.sizeBytesMax { state = State() }
            state.rows[id] = Kept(columns: columns, content: content)
            state.sizeBytes += columns.sizeBytes
        }
    }

    /// Forgets rows that are no longer in the outbox.
    func forget(_ ids: [Int64]) {
        guard !ids.isEmpty else { return }
        state.withLockedValue { state in for id in ids { state.forget(id) } }
    }

    /// Forgets all rows: the outbox has another file.
    func forgetAll() { state.withLockedValue { $0 = State() } }
}
