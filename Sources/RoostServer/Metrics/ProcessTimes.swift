import Foundation

/// A process's times, as reported by the operating system.
package struct ProcessTimes: Sendable {
    /// CPU time, in user and system mode.
    package let processorSeconds: Double
    /// When the process started, in Unix seconds; nil if the boot time of the machine isn't known.
    package let startedAt: Double?

    /// Nil if there is no such process, and on systems without `/proc`.
    ///
    /// - Parameter process: Its number, or `self`.
    package init?(of process: String = "self") {
        let ticksPerSecond = Double(sysconf(Int32(_SC_CLK_TCK)))
        guard let text = Self.text(of: "/proc/\(process)/stat"), let end = text.lastIndex(of: ")"), ticksPerSecond > 0 else {
            return nil
        }
        // The name of the process may contain spaces; the numbers follow its closing parenthesis.
        let fields = text[end...].split(separator: " ")
        guard fields.count > 20, let user = Double(fields[12]), let system = Double(fields[13]), let start = Double(fields[20])
        else {
            return nil
        }
        processorSeconds = (user + system) / ticksPerSecond
        let boot = Self.text(of: "/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }?.split(separator: " ").last
        startedAt = boot.flatMap { Double($0) }.map { $0 + start / ticksPerSecond }
    }

    /// The size of a file in /proc isn't known before it is read.
    private static func text(of path: String) -> String? {
        FileHandle(forReadingAtPath: path).flatMap { try? $0.readToEnd() }.map { String(decoding: $0, as: UTF8.self) }
    }
}
