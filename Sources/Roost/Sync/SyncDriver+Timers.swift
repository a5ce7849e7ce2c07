/// The machine's timers, and the one sleep that is under way for them.
///
/// Each call has a timer, which is cancelled when its answer comes. A sleep that is cancelled wakes the process at its end all the same, so that a client which
/// does nothing would be woken for every call of the last half minute. A sleep goes on here when its timer is cancelled, and then serves the next one.
struct TimerSchedule {
    private var ends: [Sync.Timer: Duration] = [:]
    private var sleepEnd: Duration?

    mutating func start(_ timer: Sync.Timer, until end: Duration) { ends[timer] = end }
    mutating func cancel(_ timer: Sync.Timer) { ends[timer] = nil }

    /// Returns when the sleep ends that has to begin, instead of the one under way; nil if that ends early enough, or nothing is waited for.
    mutating func nextSleep() -> Duration? {
        guard let earliest = ends.values.min() else { return nil }
        if let sleepEnd, sleepEnd <= earliest { return nil }
        sleepEnd = earliest
        return earliest
    }

    /// Notes that the sleep is over.
    mutating func woke() { sleepEnd = nil }

    /// Takes the timer that has ended first.
    mutating func takeEnded(at now: Duration) -> Sync.Timer? {
        guard let (timer, end) = ends.min(by: { $0.value < $1.value }), end <= now else { return nil }
        ends[timer] = nil
        return timer
    }
}

extension SyncDriver {
    func startTimer(_ timer: Sync.Timer, _ delay: Duration) {
        timers.start(timer, until: elapsed() + delay)
        sleepForTimers()
    }

    private func sleepForTimers() {
        guard let end = timers.nextSleep() else { return }
        timerSleep?.cancel()
        let (clock, duration) = (environment.clock, end - elapsed())
        // A chat that is gone doesn't stay for its timers.
        timerSleep = Task { [weak self] in
            do { try await clock.sleep(for: duration) } catch { return }
            await self?.wokeForTimers()
        }
    }

    private func wokeForTimers() async {
        timers.woke()
        // One by one: the first may have the next cancelled.
        while let timer = timers.takeEnded(at: elapsed()) { await post(.timer(timer)) }
        sleepForTimers()
    }

    /// Counts the time on a clock from now on.
    static func stopwatch(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}
