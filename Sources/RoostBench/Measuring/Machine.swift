import Foundation

/// The machine on which figures were measured: they mean nothing without it.
struct Machine: Encodable, CustomStringConvertible {
    let cores: Int
    let processor: String
    let kernel: String
    /// How long this disk takes to append 4 KiB with its fsync.
    let fsyncMedianMicroseconds: Double
    /// How long it takes to write 4 KiB in place with fdatasync, which is what most commits do.
    let fdatasyncMedianMicroseconds: Double

    init(directory: URL, probeSeconds: Double = 1) throws {
        cores = Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let lines = SystemFile.read("/proc/cpuinfo").split(separator: "\n")
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
        processor = model.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown processor"
        kernel = SystemFile.read("/proc/sys/kernel/osrelease").trimmingCharacters(in: .whitespacesAndNewlines)
        fsyncMedianMicroseconds = try Disk.fsyncs(in: directory, seconds: probeSeconds).median
        fdatasyncMedianMicroseconds = try Disk.rewrites(in: directory, seconds: probeSeconds).median
    }

    var description: String {
        """
        \(cores) cores, \(processor), Linux \(kernel); 4 KiB appended and fsync: p50 \(Report.number(fsyncMedianMicroseconds)) µs; \
        4 KiB in place and fdatasync: p50 \(Report.number(fdatasyncMedianMicroseconds)) µs
        """
    }
}

/// The cost of the disk itself.
enum Disk {
    /// Copies a file, and waits until the copy is on disk, so that the next measurement doesn't wait for it.
    static func copy(_ file: URL, to copy: URL) throws {
        try FileManager.default.copyItem(at: file, to: copy)
        let handle = try FileHandle(forUpdating: copy)
        defer { try? handle.close() }
        try handle.synchronize()
    }

    /// Appends 4 KiB to a file and calls fsync, repeatedly for about a second.
    static func fsyncs(in directory: URL, seconds: Double = 1) throws -> Histogram {
        try times(in: directory, seconds: seconds) { file, block, _ in
            write(file, block, block.count) == block.count && fsync(file) == 0
        }
    }

    /// Writes 4 KiB in place and calls fdatasync: what a commit does once SQLite's log has reached its size. On some file systems this takes a
    /// tenth of an append, whose new size has to be stored too.
    static func rewrites(in directory: URL, seconds: Double = 1) throws -> Histogram {
        try times(in: directory, seconds: seconds, rewrite)
    }

    /// The same at a steady pace, each timed from when it was due: the delay of the machine itself, whose processors and disk others may share.
    static func pacedRewrites(in directory: URL, perSecond: Int, seconds: Double) throws -> Histogram {
        try withProbe(in: directory) { file in
            var times = Histogram()
            let start = Clock.now()
            for number in 0..<Int(seconds * Double(perSecond)) {
                let due = start + UInt64(number) * 1_000_000_000 / UInt64(perSecond)
                let now = Clock.now()
                if now < due { Thread.sleep(forTimeInterval: Double(due - now) / 1e9) }
                guard rewrite(file, block, number) else { throw failure }
                times.record(Clock.now() - due)
            }
            return times
        }
    }

    private static func rewrite(_ file: Int32, _ block: [UInt8], _ number: Int) -> Bool {
        let position = off_t(number % blockCount * block.count)
        guard pwrite(file, block, block.count, position) == block.count else { return false }
        #if os(Linux)
        return fdatasync(file) == 0
        #else
        return fsync(file) == 0
        #endif
    }

    private static let block = [UInt8](repeating: 7, count: 4096)
    private static let blockCount = 16
    private static var failure: BenchFailure { BenchFailure("can't write to the disk: \(String(cString: strerror(errno)))") }

    private static func times(in directory: URL, seconds: Double, _ body: (Int32, [UInt8], Int) -> Bool) throws -> Histogram {
        try withProbe(in: directory) { file in
            var times = Histogram()
            let end = Clock.now() + UInt64(seconds * 1e9)
            while times.count < 1000, Clock.now() < end || times.count < 20 {
                let start = Clock.now()
                guard body(file, block, times.count) else { throw failure }
                times.record(Clock.now() - start)
            }
            return times
        }
    }

    /// A file of some blocks on disk, during the body.
    private static func withProbe(in directory: URL, _ body: (Int32) throws -> Histogram) throws -> Histogram {
        let path = directory.appending(path: "fsync-probe").path
        let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw BenchFailure("can't write \(path)") }
        defer {
            close(file)
            unlink(path)
        }
        for _ in 0..<blockCount { _ = write(file, block, block.count) }
        fsync(file)
        return try body(file)
    }
}

/// Monotonic time in nanoseconds.
enum Clock {
    static func now() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }

    /// CPU time of the calling thread.
    static func threadCPU() -> UInt64 { nanoseconds(CLOCK_THREAD_CPUTIME_ID) }

    /// CPU time of this process.
    static func processCPU() -> UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

    /// The clock of the calling thread's CPU time, which others can read; nil if there is none.
    static var ofThread: clockid_t? {
        var clock = clockid_t()
        return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : nil
    }

    /// The time of a thread's clock; 0 once the thread has ended.
    static func cpu(_ ofThread: clockid_t) -> UInt64 { nanoseconds(ofThread) }

    /// CPU time of another process, in nanoseconds, while /proc counts hundredths of a second; 0 once it has ended.
    static func cpu(ofProcess process: Int32) -> UInt64 {
        var clock = clockid_t()
        return clock_getcpuclockid(process, &clock) == 0 ? nanoseconds(clock) : 0
    }

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        // The two fields of a `timespec`. Which module it belongs to depends on the target's other imports, and its fields can't be named without
        // it.
        var time = (seconds: 0, nanoseconds: 0)
        withUnsafeMutablePointer(to: &time) { fields in
            _ = fields.withMemoryRebound(to: timespec.self, capacity: 1) { clock_gettime(clock, $0) }
        }
        return UInt64(time.seconds) * 1_000_000_000 + UInt64(time.nanoseconds)
    }
}

/// Files of /proc, whose size isn't known before they are read.
enum SystemFile {
    static func read(_ path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var text: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Foundation.read(file, &part, part.count)
            guard count > 0 else { break }
            text += part.prefix(count)
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// The benchmark itself can't continue.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String
    init(_ reason: String) { description = "The benchmark can't continue: \(reason)." }
}
