#if Cluster
import RoostCore

/// A statement that a connection prepares once and runs often.
final class PostgreSQLStatement {
    enum State { case new, sent, ready }

    /// The text with `$1`, `$2`… where the shared dialect has `?`.
    let text: String
    /// Its name on the server.
    let name: String
    var state = State.new

    init(_ text: String, name: String) {
        self.text = Self.numbered(text)
        self.name = name
    }

    /// Numbers the placeholders. A `?` in a quoted literal isn't one.
    static func numbered(_ text: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 32)
        var number = 0
        var isQuoted = false
        for byte in text.utf8 {
            if byte == UInt8(ascii: "'") { isQuoted.toggle() }
            if byte == UInt8(ascii: "?"), !isQuoted {
                number += 1
                bytes += Array("$\(number)".utf8)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The values of one statement as NUL-terminated text, in memory that the next statement reuses.
struct PostgreSQLValues {
    private var bytes: [CChar] = []
    /// Where each value begins; nil for NULL.
    private var starts: [Int?] = []

    var count: Int { starts.count }
    /// Their size in a message, where each has a length of four bytes.
    var sizeBytes: Int { bytes.count + 4 * starts.count }

    /// - Throws: ``DatabaseFailure`` for a text with a NUL, which PostgreSQL can't store.
    mutating func encode(_ values: [SQLValue]) throws {
        bytes.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
        for value in values {
            switch value {
            case .null: starts.append(nil)
            case .integer(let number):
                starts.append(bytes.count)
                append(number)
                bytes.append(0)
            case .text(var text):
                starts.append(bytes.count)
                try text.withUTF8 { utf8 in
                    guard !utf8.contains(0) else {
                        throw DatabaseFailure(message: "PostgreSQL can't store a text with a NUL character.", kind: .statement)
                    }
                    utf8.withMemoryRebound(to: CChar.self) { bytes.append(contentsOf: $0) }
                }
                bytes.append(0)
            }
        }
    }

    private mutating func append(_ number: Int64) {
        if number < 0 { bytes.append(CChar(bitPattern: UInt8(ascii: "-"))) }
        let first = bytes.count
        var rest = number.magnitude
        repeat {
            bytes.append(CChar(bitPattern: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)))
            rest /= 10
        } while rest > 0
        bytes[first...].reverse()
    }

    /// Calls the body with the values in libpq's form.
    func withPointers<T>(_ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> T) -> T {
        bytes.withUnsafeBufferPointer { bytes in
            let pointers = starts.map { start in start.flatMap { bytes.baseAddress?.advanced(by: $0) } }
            return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
        }
    }
}
#endif
