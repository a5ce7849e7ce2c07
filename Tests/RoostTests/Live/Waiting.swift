import Testing

/// Waits until something is so that nothing tells of.
///
/// It looks again after each turn of the other tasks. After many it looks less often, and leaves the processors to what it waits for.
///
/// - Throws: ``Overdue`` when the deadline is over, `CancellationError` if the test's own time is, and what looking throws.
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

/// Gives the other tasks some turns, in which something could happen that mustn't: nothing tells that it doesn't.
func letOthersRun(_ turns: Int = 1000, isolation: isolated (any Actor)? = #isolation) async {
    for _ in 0..<turns { await Task.yield() }
}
