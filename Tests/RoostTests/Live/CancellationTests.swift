import RoostAPI
import Testing

@testable import Roost

/// Readers that stop at the moment when a new value arrives: cancelling holds a lock of the task, which a new value needs to wake it.
@Suite struct CancellationTests {
    /// Follows and stops again and again, while a value changes on another thread.
    private func race<Values: AsyncSequence & Sendable>(
        _ values: @escaping @Sendable () -> Values, changing change: @escaping @Sendable (Int) -> Void
    ) async {
        let changes = Task.detached { for number in 0..<60_000 where !Task.isCancelled { change(number) } }
        for _ in 0..<4000 {
            let reader = Task.detached { for try await _ in values() {} }
            await letOthersRun(1)
            reader.cancel()
            _ = await reader.result
        }
        changes.cancel()
        await changes.value
    }

    @Test("a reader that stops while a value changes doesn't block, and isn't blocked", .timeLimit(.minutes(5)))
    func broadcast() async {
        let broadcast = Broadcast(0)
        await race({ broadcast.values() }, changing: { broadcast.send($0) })
        #expect(broadcast.current >= 0)
    }

    @Test("a reader that stops while the store changes doesn't block, and isn't blocked", .timeLimit(.minutes(5)))
    func storeChanges() async {
        let signals = ChangeSignals()
        await race({ signals.changes(of: .channels) }, changing: { _ in signals.signal(.everything) })
        var changes = signals.changes(of: .own).makeAsyncIterator()
        #expect(await changes.next()?.isEverything == true)
    }
}
