import Dispatch
import RoostDatabase

/// Looks at the memory of the process: near a limit it has less held for clients, and after a storm of clients it gives back what they took.
final class MemoryWatch: Sendable {
    /// Nil where the process may take what it needs.
    private let governor: MemoryGovernor?
    private let connections: Connections
    private let threads = Threads()
    private let ending = DispatchSemaphore(value: 0)
    private let interval: DispatchTimeInterval

    /// The allocator goes through all that it has.
    private static let trimInterval = Duration.milliseconds(500)

    /// - Parameter limitBytes: what the process may take; nil for no limit.
    init(limitBytes: Int?, budgetBytes: Int, connections: Connections) {
        governor = limitBytes.map { MemoryGovernor(limitBytes: $0, budgetBytes: budgetBytes) }
        // With a limit, memory can grow by what the fastest clients send and ask for between two looks.
        interval = limitBytes == nil ? .seconds(1) : .milliseconds(20)
        self.connections = connections
    }

    func start() {
        threads.start("roost-memory") { [self] in
            var load = ClientLoad()
            var trimmed = ContinuousClock.now
            repeat { look(&load, &trimmed) } while ending.wait(timeout: .now() + interval) == .timedOut
        }
    }

    func stop() {
        ending.signal()
        threads.wait()
    }

    private func look(_ load: inout ClientLoad, _ trimmed: inout ContinuousClock.Instant) {
        let heldBytes = connections.memory.heldBytes
        var shouldTrim = load.hasFallen(heldBytes: heldBytes, connections: connections.openCount)
        if let governor, let resident = ProcessMemory.residentBytes() {
            let decision = governor.decide(residentBytes: resident, heldBytes: heldBytes)
            connections.memory.setMax(decision.heldBytesMax)
            connections.setTakesMore(decision.takesConnections)
            if decision.shouldTrim, ContinuousClock.now - trimmed >= Self.trimInterval { shouldTrim = true }
        }
        guard shouldTrim else { return }
        ProcessMemory.returnUnused()
        trimmed = .now
    }
}

/// What clients make the server keep, about: when it has fallen far, the allocator has much that nobody uses.
///
/// A state machine without I/O.
struct ClientLoad {
    /// The most since the allocator last gave back what is free.
    private var peakBytes = 0

    /// A connection and what belongs to it.
    static let connectionBytes = 8 << 10
    /// Less than this isn't worth the look through all that the allocator has.
    static let fallBytesMin = 8 << 20

    /// Whether it is half of what it was or less, by enough to give it back. Begins again from there.
    mutating func hasFallen(heldBytes: Int, connections: Int) -> Bool {
        let bytes = max(0, heldBytes) + connections * Self.connectionBytes
        peakBytes = max(peakBytes, bytes)
        guard bytes <= peakBytes / 2, peakBytes - bytes >= Self.fallBytesMin else { return false }
        peakBytes = bytes
        return true
    }
}
