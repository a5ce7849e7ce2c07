import Foundation

/// Standard output and standard error. Everything is written at once, so a reader of a pipe sees it.
enum Output {
    /// The reason why nothing can be written.
    struct Unwritable: Error, CustomStringConvertible {
        fileprivate let code: Int32

        /// Whether the reader is gone, as at the end of `| head`.
        var isClosedPipe: Bool { code == EPIPE }
        var description: String { "can't write: \(String(cString: strerror(code)))" }
    }

    static func line(_ text: String) throws { try write(text + "\n", to: STDOUT_FILENO) }
    static func lines(_ lines: [String]) throws { try write(lines.map { $0 + "\n" }.joined(), to: STDOUT_FILENO) }
    /// A failure to write to standard error can't be reported anywhere.
    static func note(_ text: String) { try? write(text + "\n", to: STDERR_FILENO) }

    /// One JSON document, its keys sorted. Invisible characters and those that control a terminal are escaped.
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
            // A line has no trailing spaces.
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

/// The three standard descriptors of every program.
enum StandardDescriptors {
    /// Occupies closed ones (`2>&-`): the next opened file would get the number, and output would be written into it.
    ///
    /// Each is opened for the opposite direction, so that reading and writing still fail as if it were closed.
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
