import Testing

/// Waits for a condition without notifications.
///
/// It checks after each turn of the other tasks. After many it checks less often, and leaves the processors to the awaited work.
///
/// - Throws: ``Overdue`` once the deadline has passed, `CancellationError` if the test's own time is over, and errors of the check.
func until(
    within deadline: Duration = .seconds(45), isolation: isolated (any Actor)? = #isolation,
    sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + deadline
    var turns = 0
    while try await !isSo() {
        guard ContinuousClock.now < end else { throw Overdue(place: sourceLocation, deadline: deadline) }
        try Task.checkCancellation()
        turns += 1
        if turns < 1000 { await Task.yield() } else { try await Task.sleep(for: .milliseconds(1)) }
    }
}

/// A wait in vain.
struct Overdue: Error, Equatable, CustomStringConvertible {
    let place: SourceLocation
    let deadline: Duration

    var description: String { "What the test waits for at \(place) didn't come within \(deadline)." }
}

/// Gives the other tasks some turns, in which a forbidden event could happen: its absence isn't notified.
func letOthersRun(_ turns: Int = 1000, isolation: isolated (any Actor)? = #isolation) async {
    for _ in 0..<turns { await Task.yield() }
}
