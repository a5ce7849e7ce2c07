import Foundation

/// A measured process: its CPU time, its memory and its calls of write, as the kernel counts them.
struct ProcessUsage {
    /// User and system time together.
    let cpuSeconds: Double
    let residentBytes: Double
    /// Calls of write(2) and related functions.
    let writeCalls: Double
    /// The bytes written to the disk: the pages of files that the process made dirty. A page written twice counts twice, and writes to sockets
    /// don't count.
    let writtenBytes: Double

    init(of process: Int32) {
        cpuSeconds = Double(Clock.cpu(ofProcess: process)) / 1e9
        let pages = SystemFile.read("/proc/\(process)/statm").split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0
        residentBytes = pages * Double(sysconf(Int32(_SC_PAGESIZE)))
        let lines = SystemFile.read("/proc/\(process)/io").split(separator: "\n")
        func count(_ name: String) -> Double {
            let line = lines.first { $0.hasPrefix(name) }
            return line.flatMap { Double($0.dropFirst(name.count).trimmingCharacters(in: .whitespaces)) } ?? 0
        }
        writeCalls = count("syscw:")
        writtenBytes = count("write_bytes:")
    }

    /// CPU time since an earlier sample.
    func cpuMicroseconds(since earlier: ProcessUsage) -> Double { (cpuSeconds - earlier.cpuSeconds) * 1e6 }
}

/// A process's peak resident memory, as the kernel records it.
enum PeakMemory {
    /// Resets the peak to the current resident memory.
    static func reset(_ process: Int32) throws {
        let file = open("/proc/\(process)/clear_refs", O_WRONLY | O_CLOEXEC)
        defer { close(file) }
        guard file >= 0, write(file, "5", 1) == 1 else { throw BenchFailure("the peak of memory can't be reset") }
    }

    static func bytes(_ process: Int32) throws -> Double {
        let line = SystemFile.read("/proc/\(process)/status").split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        guard let kilobytes = line?.split(separator: " ").dropFirst().first.flatMap({ Double($0) }) else {
            throw BenchFailure("the peak of memory can't be read")
        }
        return kilobytes * 1024
    }
}

/// A process that a benchmark starts: this program again, as the server or as a floor, or another one. It doesn't outlive this process, however
/// that ends.
final class ChildProcess {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    /// Nil outside a run, and once the process has ended.
    private var lifeline: Lifeline?

    var identifier: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }
    var usage: ProcessUsage { ProcessUsage(of: identifier) }

    /// - Parameters:
    ///   - program: Nil for this one.
    ///   - errors: Receives its standard error.
    ///   - ending: How it is ended when this process is gone.
    init(program: URL? = nil, _ arguments: [String], errors: FileHandle, endingBy ending: Lifeline.Ending = .kill) throws {
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process.executableURL = program ?? URL(filePath: own ?? CommandLine.arguments[0])
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        try process.runHearingSignals()
        lifeline = Lifeline.current
        lifeline?.watch(identifier, endingBy: ending)
    }

    /// Its exit status; nil while it runs.
    var status: Int32? { process.isRunning ? nil : process.terminationStatus }

    /// The first line of its output.
    func firstLine() throws -> String {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(output.fileHandleForReading.fileDescriptor, &byte, 1) == 1, byte != 10 { line.append(byte) }
        guard !line.isEmpty else { throw BenchFailure("a child process ended before it began") }
        return String(decoding: line, as: UTF8.self)
    }

    /// Writes one byte to its standard input, which triggers the next step.
    func step() { _ = write(input.fileHandleForWriting.fileDescriptor, "\n", 1) }

    /// Asks it to end, and kills it after a while.
    func end(by signal: Int32 = SIGTERM, after seconds: Double = 5) {
        defer {
            lifeline?.forget(identifier)
            lifeline = nil
        }
        guard process.isRunning else { return }
        kill(identifier, signal)
        let deadline = Clock.now() + UInt64(seconds * 1e9)
        while process.isRunning, Clock.now() < deadline { usleep(2000) }
        if process.isRunning { kill(identifier, SIGKILL) }
        process.waitUntilExit()
    }

    deinit { end(after: 0) }
}

extension Process {
    /// Starts it with no signal blocked. The threads of the concurrency runtime block all signals, and a child inherits that: a program that waits
    /// for its alarm or for a request to end would then wait forever.
    func runHearingSignals() throws {
        var none = sigset_t()
        var before = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try run()
    }
}

/// A directory for one run, on the measured disk. It is deleted when the run ends, however this process ends.
final class RunDirectory {
    let url: URL
    private let lifeline: Lifeline

    init(in parent: URL) throws {
        let place = parent.appending(path: ".roost-bench-\(getpid())-\(UInt32.random(in: 0 ... .max))")
        url = place
        lifeline = try Lifeline(directory: place)
        // Not its parent too: that would be on another disk than the intended one.
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
    }

    deinit {
        // An app's store that is closing removes its own files meanwhile, which makes the removal of the whole fail.
        for _ in 0..<20 where FileManager.default.fileExists(atPath: url.path) {
            if (try? FileManager.default.removeItem(at: url)) == nil { usleep(50_000) }
        }
        lifeline.release()
    }
}
