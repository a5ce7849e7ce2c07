import Foundation

/// The terminal, taken over for a full screen and restored afterwards.
///
/// It uses the terminal's alternate screen, so the previous content reappears afterwards.
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
        // Switches to the alternate screen, marks pasted text so that its newlines don't send it line by line, and cuts off lines that are
        // too wide: a terminal that gives a character more columns than we do would wrap and scroll.
        try Output.write("\u{1B}[?1049h\u{1B}[?2004h\u{1B}[?7l\u{1B}[2J", to: STDOUT_FILENO)
        var attributes = attributes
        tcsetattr(STDIN_FILENO, TCSANOW, &attributes)
    }

    private static func giveBack(_ attributes: termios) {
        // A failure to write can't be reported anywhere.
        try? Output.write("\u{1B}[?7h\u{1B}[?2004l\u{1B}[?25h\u{1B}[?1049l", to: STDOUT_FILENO)
        var attributes = attributes
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &attributes)
    }

    /// Restores the terminal and stops the process, as SIGTSTP does with any other. Returns when the process continues, with the terminal
    /// taken over again.
    mutating func suspend() throws {
        Self.giveBack(original)
        raise(SIGSTOP)
        try resume()
    }

    /// The same for Ctrl-Z, which a terminal sends to all processes in its foreground: the shell of a script waiting for this process would
    /// hold up the prompt.
    mutating func suspendForeground() throws {
        guard tcgetpgrp(STDIN_FILENO) == getpgrp() else { return try suspend() }
        Self.giveBack(original)
        kill(0, SIGSTOP)
        // Another thread may be the one that stops the process, a moment later: without a pause the terminal would be taken over before
        // that. Time while stopped counts too.
        usleep(Self.stopMicroseconds)
        try resume()
    }

    private static let stopMicroseconds: UInt32 = 200_000

    /// Takes the terminal over again, after a shell has used it.
    mutating func resume() throws {
        invalidate()
        try Self.take(raw)
    }

    static var size: (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Discards the record of the shown lines, so that everything is written again.
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
