import Foundation
import Synchronization

/// Ends the children of this process and removes the directory of its run when it is gone without having done so, also by SIGKILL.
///
/// A shell reads from a pipe that only this process holds. It gets the number of each process to look after; when the pipe ends without a
/// last word, it ends those processes.
final class Lifeline: Sendable {
    /// How a process is ended.
    enum Ending: String {
        /// PostgreSQL ends at once, all its processes and its shared memory with it.
        case quit = "QUIT"
        /// For a process that holds nothing but memory. To a Swift program SIGQUIT is a crash to report.
        case kill = "KILL"
    }

    private static let running = Mutex<Lifeline?>(nil)
    /// That of the run under way; nil between runs.
    static var current: Lifeline? { running.withLock { $0 } }

    private let input: FileHandle

    /// A signal to a terminal's foreground group must not end the shell too. A process may write until its end, so the directory is removed after it.
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
        // A shell that is gone doesn't end the run.
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

    /// A process has ended: its number may soon be another's.
    func forget(_ process: Int32) { say("ended \(process)") }

    /// Everything has ended in order.
    func release() {
        Self.running.withLock { if $0 === self { $0 = nil } }
        say("done")
    }

    private func say(_ word: String) { try? input.write(contentsOf: Data("\(word)\n".utf8)) }
}
