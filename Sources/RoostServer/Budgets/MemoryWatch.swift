import Dispatch
import RoostDatabase

/// Measures the memory of the process, and lowers the limit for clients as it comes near its own.
final class MemoryWatch: Sendable {
    private let governor: MemoryGovernor
    private let connections: Connections
    private let threads = Threads()
    private let ending = DispatchSemaphore(value: 0)

    /// Between two measurements memory can grow by what the fastest clients send and request.
    private static let interval = DispatchTimeInterval.milliseconds(20)
    /// Trimming makes the allocator walk through all its memory.
    private static let trimInterval = Duration.milliseconds(500)

    init(limitBytes: Int, budgetBytes: Int, connections: Connections) {
        governor = MemoryGovernor(limitBytes: limitBytes, budgetBytes: budgetBytes)
        self.connections = connections
    }

    func start() {
        threads.start("roost-memory") { [self] in
            var trimmed = ContinuousClock.now
            repeat { look(&trimmed) } while ending.wait(timeout: .now() + Self.interval) == .timedOut
        }
    }

    func stop() {
        ending.signal()
        threads.wait()
    }

    private func look(_ trimmed: inout ContinuousClock.Instant) {
        guard let resident = ProcessMemory.residentBytes() else { return }
        let decision = governor.decide(residentBytes: resident, heldBytes: connections.memory.heldBytes)
        connections.memory.setMax(decision.heldBytesMax)
        connections.setTakesMore(decision.takesConnections)
        if decision.shouldTrim, ContinuousClock.now - trimmed >= Self.trimInterval {
            ProcessMemory.returnUnused()
            trimmed = .now
        }
    }
}
