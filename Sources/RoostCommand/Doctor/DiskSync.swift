import Foundation

/// Measures how long the disk takes to store data durably: every commit waits for that once.
enum DiskSync {
    private static let blockSizeBytes = 4096
    private static let rounds = 100

    static func finding(in directory: URL) -> Finding {
        guard let times = measure(in: directory)?.sorted(), !times.isEmpty else {
            return Finding(
                "fsync", .fail, "can't be measured in \(directory.path)", advice: "Make the directory writable for this user")
        }
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

    private static func measure(in directory: URL) -> [Duration]? {
        let path = directory.appending(path: ".roost-doctor-\(getpid())").path
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { return nil }
        defer {
            close(file)
            unlink(path)
        }
        let block = [UInt8](repeating: 0x52, count: blockSizeBytes)
        var times: [Duration] = []
        for _ in 0..<rounds {
            let start = ContinuousClock.now
            guard write(file, block, block.count) == block.count, fsync(file) == 0 else { return nil }
            times.append(ContinuousClock.now - start)
        }
        return times
    }

    private static func text(_ duration: Duration) -> String {
        let milliseconds = duration / .milliseconds(1)
        return "\((milliseconds * 100).rounded() / 100) ms"
    }
}
