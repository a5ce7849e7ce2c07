#if Cluster
import CPostgres
import RoostCore

/// The server's answer to one statement.
final class PostgreSQLResult {
    fileprivate let handle: OpaquePointer

    init(_ handle: OpaquePointer) { self.handle = handle }

    deinit { PQclear(handle) }

    var status: ExecStatusType { PQresultStatus(handle) }
    var rowCount: Int32 { PQntuples(handle) }
    /// The command's tag, such as `COMMIT` or `UPDATE 3`.
    var command: String { PQcmdStatus(handle).map { String(cString: $0) } ?? "" }
    /// The number of rows that the statement changed; nil for a statement that doesn't count them, such as `CREATE TABLE`.
    var changedRowCount: Int? { PQcmdTuples(handle).flatMap { Int(String(cString: $0)) } }

    /// Whether the statement has surely inserted, changed or deleted a row.
    var hasChangedRows: Bool {
        let command = command
        return ["INSERT", "UPDATE", "DELETE"].contains { command.hasPrefix($0) } && (changedRowCount ?? 0) > 0
    }

    /// A part of an error: `C` its code, `V` its severity, `M` its message.
    func errorField(_ name: Unicode.Scalar) -> String { Self.errorField(name, of: handle) }

    /// The same part of an error or a notice that libpq owns.
    static func errorField(_ name: Unicode.Scalar, of handle: OpaquePointer) -> String {
        PQresultErrorField(handle, Int32(name.value)).map { String(cString: $0) } ?? ""
    }

    /// Calls the body with each row in the order of the result.
    func each(_ body: (inout RowReader) throws -> Void) rethrows {
        let row = PostgreSQLRow(self)
        var reader = RowReader(row)
        for index in 0..<max(0, rowCount) {
            row.index = index
            reader.rewind()
            try body(&reader)
        }
    }
}

/// The current row of a result.
private final class PostgreSQLRow: Row {
    private let result: PostgreSQLResult
    private let columnCount: Int32
    var index: Int32 = 0

    init(_ result: PostgreSQLResult) {
        self.result = result
        columnCount = PQnfields(result.handle)
    }

    func isNull(_ column: Int32) -> Bool { column >= columnCount || PQgetisnull(result.handle, index, column) != 0 }

    func integer(_ column: Int32) -> Int64 { Int64(saturating: bytes(column)) }

    func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

    /// The value as text. It belongs to the result, so it must be used at once.
    private func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        guard column < columnCount, let start = PQgetvalue(result.handle, index, column) else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result.handle, index, column)))
    }
}

extension Int64 {
    /// Reads a number as PostgreSQL writes it, without making a string of it. A sum beyond 64 bits becomes the greatest or least number; text that
    /// isn't a number becomes 0, as with SQLite.
    init(saturating text: UnsafeRawBufferPointer) {
        let isNegative = text.first == UInt8(ascii: "-")
        // The negative numbers reach one further, so the sum is kept negative.
        var sum: Int64 = 0
        for byte in text.dropFirst(isNegative ? 1 : 0) {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { break }
            let (product, isOver) = sum.multipliedReportingOverflow(by: 10)
            let (next, isBeyond) = product.subtractingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            guard !isOver, !isBeyond else {
                self = isNegative ? .min : .max
                return
            }
            sum = next
        }
        self = isNegative ? sum : sum == .min ? .max : -sum
    }
}
#endif
