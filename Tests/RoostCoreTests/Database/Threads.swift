import Foundation
import RoostTestSupport

/// Runs a blocking body on its own thread, and waits for it without blocking a task.
func onThread<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}

/// Runs a body on several threads at once. The results have the order of the numbers.
func onThreads<T: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> T) async -> [T] {
    await withTaskGroup { group in
        for number in 0..<count { group.addTask { (number, await onThread { body(number) }) } }
        return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
    }
}

/// The error of a body, as text.
func failure(_ body: () throws -> Void) -> String? {
    do {
        try body()
        return nil
    } catch { return "\(error)" }
}

/// Waits for another process to do something. The deadline is only reached if that never happens.
func waitUntil(_ condition: () throws -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while try !condition() {
        guard ContinuousClock.now < deadline else { throw Missed("what was waited for") }
        usleep(5000)
    }
}
