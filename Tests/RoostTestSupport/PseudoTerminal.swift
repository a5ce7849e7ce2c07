public import Foundation

/// A terminal for a program: the program has one end, and a test the other.
public final class PseudoTerminal: Sendable {
    /// The program's end, for its standard input and output.
    public let programEnd: FileHandle
    /// The test's end. Reading it returns what the program writes.
    let master: Int32

    // The header defines these as macros that Swift doesn't import (ioctl_tty(2)).
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    /// Opens a terminal of a size in characters.
    public init(width: Int = 100, height: Int = 24) throws {
        let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (lock, number): (Int32, UInt32) = (0, 0)
        guard master >= 0, ioctl(master, Self.unlock, &lock) == 0, ioctl(master, Self.getNumber, &number) == 0 else {
            throw Missed("a terminal: errno \(errno)")
        }
        var size = winsize(ws_row: UInt16(height), ws_col: UInt16(width), ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(master, UInt(TIOCSWINSZ), &size)
        self.master = master
        programEnd = FileHandle(fileDescriptor: open("/dev/pts/\(number)", O_RDWR | O_NOCTTY), closeOnDealloc: true)
    }

    deinit { close(master) }
}
