import Foundation
import RoostAPI
import Synchronization

/// Standard input without a thread of the concurrency runtime blocked in a read.
enum StandardInput {
    private static let queue = DispatchQueue(label: "standard input")
    private static let lines = Mutex(LineReader())

    /// Whether it is typed at a terminal.
    static var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    /// The next line without its end; nil at the end of the input, and if the task is cancelled. Lines are read on request, so nothing piles up.
    ///
    /// - Throws: A ``LineReader/InvalidLine`` for one line, after which the next can be read; a ``Failure`` if nothing can be read.
    static func nextLine() async throws -> String? {
        let (stream, continuation) = AsyncStream.makeStream(of: Result<String?, any Error>.self)
        queue.async {
            continuation.yield(Result { try lines.withLock { try $0.next { try read(upTo: 1 << 16) } } })
        }
        for await line in stream { return try line.get() }
        return nil
    }

    /// The whole input, up to a number of bytes.
    static func all(upTo count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let piece = try read(upTo: min(1 << 16, count - bytes.count))
            if piece.isEmpty { break }
            bytes += piece
        }
        return bytes
    }

    /// Some bytes, as soon as any are available; none at the end.
    private static func read(upTo count: Int) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        while true {
            let count = Foundation.read(STDIN_FILENO, &buffer, buffer.count)
            if count >= 0 { return Array(buffer.prefix(count)) }
            if errno == EAGAIN {
                var wait = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                poll(&wait, 1, -1)
            } else if errno != EINTR {
                throw Failure("Standard input can't be read: \(String(cString: strerror(errno))).")
            }
        }
    }

    /// The bytes as typed.
    static func bytes() -> AsyncStream<[UInt8]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        queue.async {
            while let bytes = try? read(upTo: 4096), !bytes.isEmpty { continuation.yield(bytes) }
            continuation.finish()
        }
        return stream
    }
}

/// Splits bytes into lines.
struct LineReader {
    /// A line that can't be a message or a command. Later lines can be read.
    enum InvalidLine: Error, CustomStringConvertible {
        case notUTF8, tooLong

        var description: String {
            switch self {
            case .notUTF8: "The line isn't UTF-8 text."
            case .tooLong: "The line is too long: a text has a limit of \(Limits.messageTextLength) characters."
            }
        }
    }

    /// The largest size of a message's text, plus room for a command before it. The rest of a longer line is dropped.
    static let sizeBytesMax = Limits.messageTextLength * Limits.bytesPerCharacterMax + 1_000

    private var bytes: [UInt8] = []
    /// How many of them are known to have no line end.
    private var searched = 0
    /// Whether the rest of a too long line has yet to arrive.
    private var isSkipping = false

    /// Returns the next line; nil if there are no more bytes.
    mutating func next(reading more: () throws -> [UInt8]) throws -> String? {
        while true {
            if let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(bytes[..<end])
                take(end + 1)
                if isSkipping {
                    isSkipping = false
                } else {
                    return try Self.text(line.last == UInt8(ascii: "\r") ? line.dropLast() : line)
                }
                continue
            }
            searched = bytes.count
            if isSkipping { take(bytes.count) }
            guard bytes.count <= Self.sizeBytesMax else {
                isSkipping = true
                take(bytes.count)
                throw InvalidLine.tooLong
            }
            let piece = try more()
            guard piece.isEmpty else {
                bytes += piece
                continue
            }
            let line = bytes
            take(bytes.count)
            return line.isEmpty ? nil : try Self.text(line)
        }
    }

    private mutating func take(_ count: Int) {
        bytes.removeFirst(count)
        searched = 0
    }

    private static func text(_ line: [UInt8]) throws -> String {
        guard line.count <= sizeBytesMax else { throw InvalidLine.tooLong }
        guard let text = String(validating: line, as: UTF8.self) else { throw InvalidLine.notUTF8 }
        return text
    }
}
