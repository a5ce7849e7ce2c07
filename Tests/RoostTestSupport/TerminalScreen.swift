import Foundation
import Synchronization

/// A program on its own terminal, with the contents of its screen: it understands the output of `roost chat`, and no more.
public final class TerminalScreen {
    /// A character in a style: `1` is bold, `2` dim, `7` inverse.
    private struct Cell {
        var character: Character = " "
        var style = ""
    }

    private let width: Int
    private let height: Int
    private let process = Process()
    private let terminal: PseudoTerminal
    private let output = Mailbox<[UInt8]>()
    private var cells: [[Cell]]
    private var (row, column, style) = (0, 0, "")
    /// The beginning of a character or a sequence whose rest hasn't arrived yet.
    private var rest: [UInt8] = []
    /// The contents of the status line, with the time since the start: notices disappear after a while.
    private var statusHistory: [(after: Duration, line: String)] = []
    private let startedAt = ContinuousClock.now

    private var master: Int32 { terminal.master }

    /// Starts a program with some arguments.
    ///
    /// - Parameter program: Its path; nil for `roost`.
    public init(
        _ arguments: [String], environment: [String: String], program: String? = nil, width: Int = 100, height: Int = 24
    ) throws {
        (self.width, self.height) = (width, height)
        cells = Array(repeating: Array(repeating: Cell(), count: width), count: height)
        terminal = try PseudoTerminal(width: width, height: height)
        let programEnd = terminal.programEnd
        process.executableURL = program.map { URL(filePath: $0) } ?? ServerProcess.binary
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ROOST_") }
            .merging(["TERM": "xterm-256color"]) { $1 }.merging(environment) { $1 }
        (process.standardInput, process.standardOutput, process.standardError) = (programEnd, programEnd, programEnd)
        try process.run()
        // From here on only the program holds its end.
        try programEnd.close()
        let (master, output) = (master, output)
        // It ends when the program's end of the terminal is closed, which reading reports as an error.
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(master, &bytes, bytes.count)
                if count > 0 {
                    output.put(Array(bytes.prefix(count)))
                } else if count == 0 || errno != EINTR {
                    break
                }
            }
            output.close()
        }
    }

    deinit { if process.isRunning { process.terminate() } }

    /// Types text as it is: `\r` is Enter, `\t` is Tab.
    public func type(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(master, $0.baseAddress, $0.count) }
            if count < 0, errno != EINTR { return }
            bytes = bytes.dropFirst(max(0, count))
        }
    }

    /// Waits until the screen's lines are as expected: longer than an unanswered call of the program's takes, so its report is seen.
    public func wait(_ what: String, within deadline: Duration = .seconds(40), until isSo: ([String]) -> Bool) async throws {
        let end = ContinuousClock.now + deadline
        while !isSo(lines) {
            guard let bytes = await output.next(within: max(.zero, end - .now)) else {
                let said = statusHistory.map { "\($0.after): \($0.line)" } + ["\(ContinuousClock.now - startedAt): now"]
                let status = process.isRunning ? "is running" : "has ended with \(process.terminationStatus)"
                throw Missed(
                    """
                    \(what) on the screen of a program that \(status)
                    \(lines.joined(separator: "\n"))
                    Its status line said:
                    \(said.joined(separator: "\n"))
                    """)
            }
            take(bytes)
        }
    }

    /// Waits until a line contains a text.
    public func wait(for text: String) async throws { try await wait(text) { $0.contains { $0.contains(text) } } }

    public var processIdentifier: Int32 { process.processIdentifier }

    /// Whether the terminal passes on each key as it is pressed, as a full screen needs it.
    public var isRaw: Bool {
        var attributes = termios()
        return tcgetattr(master, &attributes) == 0 && attributes.c_lflag & tcflag_t(ICANON) == 0
    }

    /// Waits until the program has ended by itself.
    public func end() async throws {
        let end = ContinuousClock.now + .seconds(30)
        while await output.next(within: max(.zero, end - .now)) != nil {}
        while process.isRunning {
            guard ContinuousClock.now < end else {
                kill(process.processIdentifier, SIGKILL)
                throw Missed("the end of the program")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        guard process.terminationStatus == 0 else { throw Missed("a good end: \(process.terminationStatus)") }
    }

    /// The contents of the screen, without the spaces at the end of a line.
    public var lines: [String] {
        cells.map { line in
            let text = String(line.map(\.character))
            return String(text.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// The words of the screen that are written in a style, line by line.
    public func words(in style: String) -> [String] {
        cells.compactMap { line in
            let text = String(line.filter { $0.style == style }.map(\.character)).trimmingCharacters(in: .whitespaces)
            return text.isEmpty ? nil : text
        }
    }

    // MARK: The program's output

    private func take(_ bytes: [UInt8]) {
        let all = rest + bytes
        // A character or a sequence that is cut off waits for the next piece.
        let pending = Self.unfinished(all)
        rest = Array(all.suffix(pending))
        var text = Substring(String(decoding: all.dropLast(pending), as: UTF8.self))
        defer {
            let status = lines.suffix(2).first ?? ""
            if status != statusHistory.last?.line { statusHistory.append((.now - startedAt, status)) }
        }
        while let character = text.popFirst() {
            switch character {
            case "\u{1B}": takeSequence(&text)
            case "\r": column = 0
            case "\n", "\r\n": row = min(row + 1, height - 1)
            default:
                guard row < height, column < width else { continue }
                cells[row][column] = Cell(character: character, style: style)
                column += 1
            }
        }
    }

    /// How many bytes at the end are the beginning of a sequence, or of a character.
    private static func unfinished(_ bytes: [UInt8]) -> Int {
        if let escape = bytes.lastIndex(of: 0x1B), !bytes[escape...].dropFirst(2).contains(where: { (0x40...0x7E).contains($0) }) {
            return bytes.count - escape
        }
        guard let start = bytes.lastIndex(where: { $0 & 0b1100_0000 != 0b1000_0000 }) else { return 0 }
        let length = max(1, (~bytes[start]).leadingZeroBitCount)
        return length > bytes.count - start ? bytes.count - start : 0
    }

    private func takeSequence(_ text: inout Substring) {
        guard text.popFirst() == "[" else { return }
        let parameters = String(text.prefix { !$0.isLetter })
        text = text.dropFirst(parameters.count)
        let numbers = parameters.split(separator: ";").compactMap { Int($0) }
        switch text.popFirst() {
        case "H": (row, column) = ((numbers.first ?? 1) - 1, (numbers.last ?? 1) - 1)
        case "K": if row < height { cells[row] = Array(repeating: Cell(), count: width) }
        case "J": cells = Array(repeating: Array(repeating: Cell(), count: width), count: height)
        case "m": style = parameters == "0" ? "" : parameters
        default: break
        }
    }
}
