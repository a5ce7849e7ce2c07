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
            try OperationFields.requireKnown(columns.fields, of: operation.operation)
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

/// The fields that operations have in this version.
private enum OperationFields {
    private static let schemas = NIOLockedValueBox<[String: Schema]>([:])

    /// Throws ``UnknownField`` if the stored fields include one that only a newer version knows. Decoding ignores it, and without it the operation would be
    /// another one, such as a message that notifies everyone instead of nobody.
    static func requireKnown(_ stored: Data, of operation: any RoostAPI.Operation) throws {
        let kind = type(of: operation)
        let json = try StoredJSON.decode(JSONValue.self, from: stored)
        guard let field = try schema(of: kind).unknownField(in: json) else { return }
        throw UnknownField(operation: kind.name, field: field)
    }

    /// Derived once: that takes longer than decoding a row.
    private static func schema(of kind: any RoostAPI.Operation.Type) throws -> Schema {
        let name = kind.name
        if let known = schemas.withLockedValue({ $0[name] }) { return known }
        let schema = try Schema.of(kind)
        schemas.withLockedValue { $0[name] = schema }
        return schema
    }
}

extension Schema {
    /// The name of a member that an object of this shape, or one in it, doesn't have; nil if there is none.
    fileprivate func unknownField(in value: JSONValue) -> String? {
        switch (self, value) {
        case (.object(_, let fields), .object(let members)):
            for (name, member) in members {
                guard let field = fields.first(where: { $0.name == name }) else { return name }
                if let unknown = field.schema.unknownField(in: member) { return unknown }
            }
        case (.map(let element), .object(let members)):
            for member in members.values { if let unknown = element.unknownField(in: member) { return unknown } }
        case (.array(let element), .array(let values)):
            for member in values { if let unknown = element.unknownField(in: member) { return unknown } }
        default: break
        }
        return nil
    }
}

/// A field of an operation that another version of this package has put into the outbox.
private struct UnknownField: Error, CustomStringConvertible {
    var operation: String
    var field: String
    var description: String { "In this version \(operation) has no field \(field)." }
}
