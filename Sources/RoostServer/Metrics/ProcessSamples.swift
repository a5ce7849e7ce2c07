import Foundation
import RoostDatabase
import Synchronization

/// The operating system's numbers for this process. On systems without `/proc` only the limits are known.
///
/// Counting open files takes time in proportion to the connections. So the numbers are read at most once a second, however often the page is
/// requested; concurrent requests wait for the reading.
final class ProcessSamples: Sendable {
    private struct Reading {
        let at: ContinuousClock.Instant
        let samples: [MetricSample]
    }

    private let last = Mutex<Reading?>(nil)
    private let now: @Sendable () -> ContinuousClock.Instant
    private let read: @Sendable () -> [MetricSample]

    /// How long a reading is reused.
    private static let interval = Duration.seconds(1)

    init(
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        read: @escaping @Sendable () -> [MetricSample] = { ProcessSamples.readNow() }
    ) {
        self.now = now
        self.read = read
    }

    /// The numbers as of at most a second ago.
    var samples: [MetricSample] {
        last.withLock { reading in
            let time = self.now()
            if let reading, time < reading.at + Self.interval { return reading.samples }
            let samples = self.read()
            reading = Reading(at: time, samples: samples)
            return samples
        }
    }

    static func readNow() -> [MetricSample] {
        var samples: [MetricSample] = []
        if let resident = ProcessMemory.residentBytes() { samples.append(MetricSample("process_resident_memory_bytes", resident)) }
        if let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
            // The directory itself is open while it is being read.
            samples.append(MetricSample("process_open_fds", max(0, open - 1)))
        }
        var limit = rlimit()
        if getrlimit(openFiles, &limit) == 0 { samples.append(MetricSample("process_max_fds", Int64(clamping: limit.rlim_cur))) }
        return samples + times()
    }

    private static func times() -> [MetricSample] {
        guard let times = ProcessTimes() else { return [] }
        var samples = [MetricSample("process_cpu_seconds_total", seconds: times.processorSeconds)]
        if let startedAt = times.startedAt { samples.append(MetricSample("process_start_time_seconds", seconds: startedAt)) }
        return samples
    }

    #if canImport(Glibc)
    private static let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    private static let openFiles = RLIMIT_NOFILE
    #endif
}
