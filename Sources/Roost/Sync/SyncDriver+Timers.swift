/// The machine's timers, and the one sleep in progress for them.
///
/// Each call has a timer, which is cancelled when its answer arrives. A cancelled sleep wakes the process at its end all the same, so an idle client
/// would be woken for every call of the last half minute. Here a sleep continues when its timer is cancelled, and then serves the next one.
struct TimerSchedule {
    private var ends: [Sync.Timer: Duration] = [:]
    private var sleepEnd: Duration?
    /// Timers that have ended, and of which the machine hasn't been notified.
    private var ended: Set<Sync.Timer> = []

    /// Returns the end of the sleep that must begin instead of the current one; nil if that one ends early enough.
    mutating func start(_ timer: Sync.Timer, until end: Duration) -> Duration? {
        ended.remove(timer)
        ends[timer] = end
        if let sleepEnd, sleepEnd <= end { return nil }
        sleepEnd = end
        return end
    }

    mutating func cancel(_ timer: Sync.Timer) {
        ended.remove(timer)
        ends[timer] = nil
    }

    /// Takes the timers that have ended when the sleep is over, in the order of their ends.
    ///
    /// - Returns: These, and the end of the next sleep; nil if no timer is left.
    mutating func woke(at now: Duration) -> (ended: [Sync.Timer], next: Duration?) {
        let ended = ends.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for timer in ended { ends[timer] = nil }
        self.ended.formUnion(ended)
        sleepEnd = ends.values.min()
        return (ended, sleepEnd)
    }

    /// Notes an output of the machine, which is performed later.
    mutating func note(_ output: Sync.Output) {
        switch output {
        case .startTimer(let timer, _), .cancelTimer(let timer): ended.remove(timer)
        default: break
        }
    }

    /// Returns whether the machine is to be notified that a timer has ended, once: not if it has started or cancelled it since.
    mutating func takeEnded(_ timer: Sync.Timer) -> Bool { ended.remove(timer) != nil }
}

extension SyncDriver {
    func startTimer(_ timer: Sync.Timer, _ delay: Duration) {
        if let end = timers.start(timer, until: elapsed() + delay) { sleep(until: end) }
    }

    private func sleep(until end: Duration) {
        timerSleep?.cancel()
        let (clock, duration) = (environment.clock, end - elapsed())
        // Weak, so the task doesn't keep the chat alive.
        timerSleep = Task { [weak self] in
            do { try await clock.sleep(for: duration) } catch { return }
            await self?.wokeForTimers()
        }
    }

    func wokeForTimers() async {
        let (ended, next) = timers.woke(at: elapsed())
        if let next { sleep(until: next) }
        if !ended.isEmpty { await post(ended.map(Sync.Input.timer)) }
    }

    /// Measures the time on a clock from now on.
    static func stopwatch(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}
