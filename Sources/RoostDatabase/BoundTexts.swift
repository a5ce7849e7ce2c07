import GRDBSQLite

/// Memory for the texts bound to a connection's statements, which saves SQLite an allocation for each.
///
/// Statements end in the reverse order of their starts, and so do their texts. SQLite copies a text that doesn't fit.
package final class BoundTexts {
    /// Enough for the texts of a statement, unless a message has many thousands of bytes.
    private static let capacity = 16 << 10
    private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 1)
    package private(set) var end = 0

    package init() {}

    deinit { bytes.deallocate() }

    /// Binds a text to a parameter of a statement on this memory's connection. The text stays here until ``removeAll(from:)``, or SQLite has copied
    /// it.
    ///
    /// - Returns: SQLite's code.
    package func bind(_ text: String, to statement: OpaquePointer?, at index: Int32) -> Int32 {
        var text = text
        return text.withUTF8 { bytes in
            // SQLite reads it until something else is bound (SQLITE_STATIC).
            if let kept = keep(bytes) { return sqlite3_bind_text(statement, index, kept, Int32(bytes.count), nil) }
            // SQLite copies it (SQLITE_TRANSIENT), so the pointer needn't outlive the call.
            let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
            return bytes.withMemoryRebound(to: CChar.self) { characters in
                guard let start = characters.baseAddress else { return sqlite3_bind_text(statement, index, "", 0, transient) }
                return sqlite3_bind_text(statement, index, start, Int32(clamping: characters.count), transient)
            }
        }
    }

    /// Keeps a text until ``removeAll(from:)``.
    ///
    /// - Returns: The text's address; nil if there is no room.
    private func keep(_ text: UnsafeBufferPointer<UInt8>) -> UnsafePointer<CChar>? {
        guard text.count < Self.capacity - end, let start = bytes.baseAddress?.advanced(by: end) else { return nil }
        if let first = text.baseAddress { start.copyMemory(from: first, byteCount: text.count) }
        end += text.count
        return UnsafePointer(start.assumingMemoryBound(to: CChar.self))
    }

    /// Releases all texts kept since `end`.
    package func removeAll(from end: Int) { self.end = end }
}
