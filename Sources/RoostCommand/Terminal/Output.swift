import Foundation

/// Standard output and standard error. Everything is written at once, so that a reader of a pipe sees it.
enum Output {
    static func line(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }
    static func lines(_ lines: [String]) { write(lines.map { $0 + "\n" }.joined(), to: STDOUT_FILENO) }
    static func note(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

    /// One JSON document, its keys sorted. What can't be seen, or steers a terminal, is escaped.
    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        line(String(decoding: try encoder.encode(value), as: UTF8.self).escapingInvisibleJSON)
    }

    /// Rows as aligned columns.
    static func table(_ rows: [[String]]) -> [String] {
        let columnCount = rows.map(\.count).max() ?? 0
        let widths = (0..<columnCount).map { column in
            rows.map { $0.indices.contains(column) ? $0[column].columnWidth : 0 }.max() ?? 0
        }
        return rows.map { row in
            // A line has nothing after its last text, not even spaces.
            let row = row.dropLast(row.reversed().prefix(while: \.isEmpty).count)
            let cells = row.enumerated().map { column, cell in column == row.count - 1 ? cell : cell.padded(to: widths[column]) }
            return cells.joined(separator: "  ")
        }
    }

    /// Writes all of the text. A reader that is gone ends the process, as it does for any other tool in a pipe.
    static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wait, 1, -1)
            } else if errno != EINTR {
                if descriptor == STDOUT_FILENO { exit(errno == EPIPE ? 0 : 1) }
                return
            }
        }
    }
}
