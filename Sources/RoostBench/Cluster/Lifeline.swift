#if Cluster
import Foundation

/// Ends processes and removes a directory when this process is gone without having done so, also by SIGKILL.
///
/// A shell reads from a pipe that only this process holds. It gets the number of each process to look after; when the pipe ends without a
/// last word, it ends those processes.
final class Lifeline {
    private let process = Process()
    private let pipe = Pipe()

    /// How a process is ended.
    enum Ending: String {
        /// PostgreSQL ends at once, all its processes and its shared memory with it.
        case quit = "QUIT"
        /// For a process that holds nothing but memory. To a Swift program SIGQUIT is a crash to report.
        case kill = "KILL"
    }

    /// A signal to a terminal's foreground group must not end the shell too.
    private static let script = """
        trap '' INT TERM HUP QUIT
        while read -r word one; do
          case $word in
            done) exit ;;
            KILL) kills="$kills $one" ;;
            QUIT) quits="$quits $one" ;;
            ended) rest=; for other in $kills; do [ "$other" = "$one" ] || rest="$rest $other"; done; kills=$rest ;;
          esac
        done
        for one in $kills; do kill -KILL "$one"; done
        for one in $quits; do kill -QUIT "$one"; done
        for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
          alive=; for one in $quits; do kill -0 "$one" && alive=yes; done
          [ -z "$alive" ] && break
          sleep 0.2
        done
        for one in $quits; do kill -KILL "$one"; done
        rm -rf "$1"
        """

    init(directory: URL) throws {
        process.executableURL = URL(filePath: "/bin/sh")
        process.currentDirectoryURL = URL(filePath: "/")
        process.arguments = ["-c", Self.script, "sh", directory.path]
        process.standardInput = pipe
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        // No other child may hold the pipe open.
        _ = fcntl(pipe.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try process.runHearingSignals()
    }

    func watch(_ process: Int32, endingBy ending: Ending) { say("\(ending.rawValue) \(process)") }

    /// A process that was to be killed has ended: its number may soon be another's.
    func forget(_ process: Int32) { say("ended \(process)") }

    /// Everything has ended in order.
    func release() { say("done") }

    private func say(_ word: String) { try? pipe.fileHandleForWriting.write(contentsOf: Data("\(word)\n".utf8)) }
}
#endif
