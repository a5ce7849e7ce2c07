/// Memory for the texts that are bound to a connection's statements: SQLite would take memory for each, and give it back.
///
/// Statements end in the reverse order of their beginnings, and so do their texts. A text for which there is no room is SQLite's to copy.
final class BoundTexts {
    /// Enough for the texts of a statement, unless a message has many thousand bytes.
    private static let capacity = 16 << 10
    private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 1)
    private(set) var end = 0

    deinit { bytes.deallocate() }

    /// Keeps a text until ``removeAll(from:)``.
    ///
    /// - Returns: Where it lies; nil if there is no room.
    func keep(_ text: UnsafeBufferPointer<UInt8>) -> UnsafePointer<CChar>? {
        guard text.count < Self.capacity - end, let start = bytes.baseAddress?.advanced(by: end) else { return nil }
        if let first = text.baseAddress { start.copyMemory(from: first, byteCount: text.count) }
        end += text.count
        return UnsafePointer(start.assumingMemoryBound(to: CChar.self))
    }

    /// Lets go of all texts that were kept since.
    func removeAll(from end: Int) { self.end = end }
}
