import Foundation
import Synchronization

/// Ends the children of this process and removes the directory of its run if this process ends without having done so, even by SIGKILL.
///
/// A shell reads from a pipe that only this process holds. It is sent the number of each process to look after; if the pipe closes without a final
/// word, it ends those processes.
final class Lifeline: Sendable {
    /// How a process is ended.
    enum Ending: String {
        /// PostgreSQL ends at once, with all its processes and its shared memory.
        case quit = "QUIT"
        /// For a process that holds nothing but memory. A Swift program would report SIGQUIT as a crash.
        case kill = "KILL"
    }

    private static let running = Mutex<Lifeline?>(nil)
    /// The one of the current run; nil between runs.
    static var current: Lifeline? { running.withLock { $0 } }

    private let input: FileHandle

    /// A signal to a terminal's foreground group must not end the shell too. A process may write until its end, so the directory is removed after
    /// that.
    private static let script = """
        trap '' INT TERM HUP QUIT
        without() { gone=$1; shift; rest=; for other; do [ "$other" = "$gone" ] || rest="$rest $other"; done; }
        while read -r word one; do
          case $word in
            done) exit ;;
            KILL) kills="$kills $one" ;;
            QUIT) quits="$quits $one" ;;
            ended) without "$one" $kills; kills=$rest; without "$one" $quits; quits=$rest ;;
          esac
        done
        for one in $kills; do kill -KILL "$one"; done
        for one in $quits; do kill -QUIT "$one"; done
        for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
          alive=; for one in $kills $quits; do kill -0 "$one" && alive=yes; done
          [ -z "$alive" ] && break
          sleep 0.2
        done
        for one in $quits; do kill -KILL "$one"; done
        rm -rf "$1"
        """

    /// Becomes the ``current`` one.
    init(directory: URL) throws {
        // The run continues even if the shell is gone.
        signal(SIGPIPE, SIG_IGN)
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: "/bin/sh")
        process.currentDirectoryURL = URL(filePath: "/")
        process.arguments = ["-c", Self.script, "sh", directory.path]
        process.standardInput = pipe
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        input = pipe.fileHandleForWriting
        // No other child may hold the pipe open.
        _ = fcntl(input.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try process.runHearingSignals()
        Self.running.withLock { $0 = self }
    }

    func watch(_ process: Int32, endingBy ending: Ending) { say("\(ending.rawValue) \(process)") }

    /// A process has ended: its number may be reused.
    func forget(_ process: Int32) { say("ended \(process)") }

    /// Everything has been cleaned up.
    func release() {
        Self.running.withLock { if $0 === self { $0 = nil } }
        say("done")
    }

    private func say(_ word: String) { try? input.write(contentsOf: Data("\(word)\n".utf8)) }
}
