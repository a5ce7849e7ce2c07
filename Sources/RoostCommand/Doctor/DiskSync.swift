import Foundation

/// Measures how long the disk takes to store data durably: every commit waits for that once.
enum DiskSync {
    private static let blockSizeBytes = 4096
    private static let rounds = 100

    /// The system refused to create, write or sync a file.
    private struct Refused: Error {
        let code: Int32
    }

    static func finding(in directory: URL) -> Finding {
        let times: [Duration]
        do { times = try measure(in: directory).sorted() } catch { return unmeasured(in: directory, error.code) }
        let (median, slow) = (times[times.count / 2], times[times.count * 99 / 100])
        let found = "p50 \(text(median)), p99 \(text(slow)) for 4 KiB"
        if median < .microseconds(20) {
            return Finding(
                "fsync", .warn, found,
                advice: "No disk is that fast: a layer above it may report data as stored that isn't")
        }
        guard median < .milliseconds(20) else {
            return Finding("fsync", .warn, found, advice: "Each message waits that long: use a faster disk")
        }
        return Finding("fsync", .ok, found)
    }

    /// The finding for a directory where the disk can't be measured, with the number of the system's error.
    static func unmeasured(in directory: URL, _ code: Int32) -> Finding {
        Finding(
            "fsync", .fail, "can't be measured in \(directory.path): \(String(cString: strerror(code)))",
            advice: DirectoryChecks.writingAdvice(after: code, ifNotPermitted: "Make the directory writable for this user"))
    }

    private static func measure(in directory: URL) throws(Refused) -> [Duration] {
        let path = directory.appending(path: ".roost-doctor-\(getpid())").path
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Refused(code: errno) }
        defer {
            close(file)
            unlink(path)
        }
        let block = [UInt8](repeating: 0x52, count: blockSizeBytes)
        var times: [Duration] = []
        for _ in 0..<rounds {
            let start = ContinuousClock.now
            let count = write(file, block, block.count)
            // If only a part fits, that part is written.
            guard count == block.count else { throw Refused(code: count < 0 ? errno : ENOSPC) }
            guard fsync(file) == 0 else { throw Refused(code: errno) }
            times.append(ContinuousClock.now - start)
        }
        return times
    }

    private static func text(_ duration: Duration) -> String {
        let milliseconds = duration / .milliseconds(1)
        return "\((milliseconds * 100).rounded() / 100) ms"
    }
}
