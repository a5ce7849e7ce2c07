import GRDBSQLite

/// Memory for the texts that are bound to a connection's statements: SQLite would take memory for each, and give it back.
///
/// Statements end in the reverse order of their beginnings, and so do their texts. A text for which there is no room is SQLite's to copy.
package final class BoundTexts {
    /// Enough for the texts of a statement, unless a message has many thousand bytes.
    private static let capacity = 16 << 10
    private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 1)
    package private(set) var end = 0

    package init() {}

    deinit { bytes.deallocate() }

    /// Binds a text to a parameter of a statement, whose connection this memory belongs to. It lies here until ``removeAll(from:)``, or is SQLite's own copy.
    ///
    /// - Returns: SQLite's code.
    package func bind(_ text: String, to statement: OpaquePointer?, at index: Int32) -> Int32 {
        var text = text
        return text.withUTF8 { bytes in
            // SQLite looks at it until something else is bound (SQLITE_STATIC).
            if let kept = keep(bytes) { return sqlite3_bind_text(statement, index, kept, Int32(bytes.count), nil) }
            // SQLite makes its own copy (SQLITE_TRANSIENT), so that the pointer need not outlive the call.
            let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
            return bytes.withMemoryRebound(to: CChar.self) { characters in
                guard let start = characters.baseAddress else { return sqlite3_bind_text(statement, index, "", 0, transient) }
                return sqlite3_bind_text(statement, index, start, Int32(clamping: characters.count), transient)
            }
        }
    }

    /// Keeps a text until ``removeAll(from:)``.
    ///
    /// - Returns: Where it lies; nil if there is no room.
    private func keep(_ text: UnsafeBufferPointer<UInt8>) -> UnsafePointer<CChar>? {
        guard text.count < Self.capacity - end, let start = bytes.baseAddress?.advanced(by: end) else { return nil }
        if let first = text.baseAddress { start.copyMemory(from: first, byteCount: text.count) }
        end += text.count
        return UnsafePointer(start.assumingMemoryBound(to: CChar.self))
    }

    /// Lets go of all texts that were kept since.
    package func removeAll(from end: Int) { self.end = end }
}
