import Foundation
import Testing

@testable import RoostServer

/// Work with a time limit: closing the database during shutdown.
@Suite struct DeadlineTests {
    @Test("work that ends in time returns its result")
    func inTime() async throws {
        #expect(try await Deadline.run(atMost: .seconds(20)) { 7 }?.get() == 7)
        let failed = await Deadline.run(atMost: .seconds(20)) { throw CancellationError() }
        #expect(throws: CancellationError.self) { try failed?.get() }
        #expect(failed != nil)
    }

    @Test("work that hangs, as on a disk that never answers, is abandoned at its deadline")
    func hanging() async throws {
        let disk = DispatchSemaphore(value: 0)
        let result = await Deadline.run(atMost: .milliseconds(50)) { disk.wait() }
        #expect(result == nil)
        // When it ends after all, its result isn't reported again.
        disk.signal()
    }
}
