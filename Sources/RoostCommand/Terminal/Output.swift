import Foundation

/// Standard output and standard error. Everything is written at once, so that a reader of a pipe sees it.
enum Output {
    /// Why nothing can be written.
    struct Unwritable: Error, CustomStringConvertible {
        fileprivate let code: Int32

        /// Whether whoever read it is gone, as at the end of `| head`.
        var isClosedPipe: Bool { code == EPIPE }
        var description: String { "can't write: \(String(cString: strerror(code)))" }
    }

    static func line(_ text: String) throws { try write(text + "\n", to: STDOUT_FILENO) }
    static func lines(_ lines: [String]) throws { try write(lines.map { $0 + "\n" }.joined(), to: STDOUT_FILENO) }
    /// Nobody can be told that standard error can't be written.
    static func note(_ text: String) { try? write(text + "\n", to: STDERR_FILENO) }

    /// One JSON document, its keys sorted. What can't be seen, or steers a terminal, is escaped.
    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try line(String(decoding: try encoder.encode(value), as: UTF8.self).escapingInvisibleJSON)
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

    /// Writes all of the text.
    static func write(_ text: String, to descriptor: Int32) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wait, 1, -1)
            } else if errno != EINTR {
                throw Unwritable(code: errno)
            }
        }
    }
}

/// The three descriptors that every program is started with.
enum StandardDescriptors {
    /// Occupies those that are closed (`2>&-`): the next file that is opened would get the number, and what is printed would be written into it.
    ///
    /// Each can't be used in the direction it is meant for, so that reading and writing still tell that it was closed.
    static func occupy() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Ends the process as a write into a closed pipe ends any other tool.
    static func endByClosedPipe() -> Never {
        signal(SIGPIPE, SIG_DFL)
        raise(SIGPIPE)
        // The signal may be blocked.
        exit(128 + SIGPIPE)
    }
}
