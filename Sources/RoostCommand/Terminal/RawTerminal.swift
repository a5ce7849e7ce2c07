import Foundation

/// The terminal, taken over for a full screen, and given back as it was.
///
/// It shows on the terminal's second screen, so that what stood there before is there again afterwards.
struct RawTerminal: ~Copyable {
    private let original: termios
    private let raw: termios
    private var shown: [String] = []
    private var size = (width: 0, height: 0)

    init() throws {
        var attributes = termios()
        guard tcgetattr(STDIN_FILENO, &attributes) == 0 else { throw Failure("This isn't a terminal. Use --plain.") }
        let before = attributes
        cfmakeraw(&attributes)
        try Self.take(attributes)
        (original, raw) = (before, attributes)
    }

    deinit { Self.giveBack(original) }

    private static func take(_ attributes: termios) throws {
        // The second screen; pasted text marked as such, so that its newlines don't send it line by line; and what is too wide for a line cut off: a
        // terminal that gives a character more columns than we do would begin another line, and scroll.
        try Output.write("\u{1B}[?1049h\u{1B}[?2004h\u{1B}[?7l\u{1B}[2J", to: STDOUT_FILENO)
        var attributes = attributes
        tcsetattr(STDIN_FILENO, TCSANOW, &attributes)
    }

    private static func giveBack(_ attributes: termios) {
        // Nobody is there to be told when it can't be written.
        try? Output.write("\u{1B}[?7h\u{1B}[?2004l\u{1B}[?25h\u{1B}[?1049l", to: STDOUT_FILENO)
        var attributes = attributes
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &attributes)
    }

    /// Gives the terminal back and stops the process, as SIGTSTP does with any other. Returns when it goes on, with the terminal taken over again.
    mutating func suspend() throws {
        Self.giveBack(original)
        raise(SIGSTOP)
        try resume()
    }

    /// The same for Ctrl-Z, which a terminal tells to all that runs in its foreground: the shell of a script that waits for this process would
    /// hold up the prompt.
    mutating func suspendForeground() throws {
        guard tcgetpgrp(STDIN_FILENO) == getpgrp() else { return try suspend() }
        Self.giveBack(original)
        kill(0, SIGSTOP)
        // Another thread may be the one that stops the process, a moment later: without a pause the terminal would be taken over before. Time that
        // it stands still counts too.
        usleep(Self.stopMicroseconds)
        try resume()
    }

    private static let stopMicroseconds: UInt32 = 200_000

    /// Takes the terminal over again, in which a shell has been meanwhile.
    mutating func resume() throws {
        invalidate()
        try Self.take(raw)
    }

    static var size: (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Forgets what is shown, so that everything is written again.
    mutating func invalidate() { shown = [] }

    /// Writes the lines that have changed.
    mutating func show(_ lines: [String], cursorColumn: Int) throws {
        let size = Self.size
        var text = "\u{1B}[?25l"
        if size != self.size || shown.count != lines.count {
            text += "\u{1B}[2J"
            shown = []
            self.size = size
        }
        for (row, line) in lines.enumerated() where !shown.indices.contains(row) || shown[row] != line {
            text += "\u{1B}[\(row + 1);1H\u{1B}[2K\(line)"
        }
        text += "\u{1B}[\(lines.count);\(cursorColumn + 1)H\u{1B}[?25h"
        shown = lines
        try Output.write(text, to: STDOUT_FILENO)
    }
}
