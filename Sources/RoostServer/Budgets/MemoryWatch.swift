import RoostDatabase

/// Measures the memory of the process: near its limit it lowers the limit for clients, and after a surge of clients it returns free memory to the
/// system.
final class MemoryWatch: Sendable {
    /// Nil if the process has no limit.
    private let governor: MemoryGovernor?
    private let connections: Connections
    private let threads = Threads()
    private let ending = MonotonicSemaphore()
    private let interval: Duration

    /// Trimming makes the allocator walk through all its memory.
    private static let trimInterval = Duration.milliseconds(500)

    /// - Parameter limitBytes: The most memory the process may use; nil for no limit.
    init(limitBytes: Int?, budgetBytes: Int, connections: Connections) {
        governor = limitBytes.map { MemoryGovernor(limitBytes: $0, budgetBytes: budgetBytes) }
        // Between two measurements memory can grow by what the fastest clients send and request.
        interval = limitBytes == nil ? .milliseconds(250) : .milliseconds(20)
        self.connections = connections
    }

    func start() {
        threads.start("roost-memory") { [self] in
            var load = ClientLoad()
            var growth = MemoryGrowth()
            var trimmed = ContinuousClock.now
            repeat { look(&load, &growth, &trimmed) } while !ending.wait(atMost: interval)
        }
    }

    func stop() {
        ending.signal()
        threads.wait()
    }

    private func look(_ load: inout ClientLoad, _ growth: inout MemoryGrowth, _ trimmed: inout ContinuousClock.Instant) {
        let heldBytes = connections.memory.heldBytes
        let resident = ProcessMemory.residentBytes()
        let mayTrim = ContinuousClock.now - trimmed >= Self.trimInterval
        var shouldTrim = load.hasFallen(heldBytes: heldBytes, connections: connections.openCount)
        if let resident, mayTrim, growth.hasGrown(to: resident) { shouldTrim = true }
        if let governor, let resident {
            let decision = governor.decide(residentBytes: resident, heldBytes: heldBytes)
            connections.memory.setMax(decision.heldBytesMax)
            connections.setTakesMore(decision.takesConnections)
            if decision.shouldTrim, mayTrim { shouldTrim = true }
        }
        guard shouldTrim else { return }
        ProcessMemory.returnUnused()
        if let resident = ProcessMemory.residentBytes() { growth.trimmed(to: resident) }
        trimmed = .now
    }
}

/// How far the process has grown since free memory was last returned. Part of that growth is freed memory that the allocator keeps in small pieces.
///
/// A state machine without I/O.
struct MemoryGrowth {
    /// The smallest size since then.
    private var leastBytes: Int?

    /// Less growth isn't worth a trim, and neither is growth that is small relative to the memory the allocator has to walk through.
    static let growthBytesMin = 2 << 20
    static let growthShareMin = 32

    /// Returns whether the process has grown enough to be worth a trim.
    mutating func hasGrown(to residentBytes: Int) -> Bool {
        let least = min(leastBytes ?? residentBytes, residentBytes)
        leastBytes = least
        return residentBytes - least >= max(Self.growthBytesMin, least / Self.growthShareMin)
    }

    /// Free memory was returned; this much is left.
    mutating func trimmed(to residentBytes: Int) { leastBytes = residentBytes }
}

/// Roughly what the server holds for clients. After it has fallen far, much of the allocator's memory is free.
///
/// A state machine without I/O.
struct ClientLoad {
    /// The peak since the last trim.
    private var peakBytes = 0

    /// The memory of an idle connection.
    static let connectionBytes = 8 << 10
    /// A smaller fall isn't worth a trim.
    static let fallBytesMin = 8 << 20

    /// Returns whether the load has fallen to half of its peak, by enough to be worth a trim; the peak then starts over from here.
    mutating func hasFallen(heldBytes: Int, connections: Int) -> Bool {
        let bytes = max(0, heldBytes) + connections * Self.connectionBytes
        peakBytes = max(peakBytes, bytes)
        guard bytes <= peakBytes / 2, peakBytes - bytes >= Self.fallBytesMin else { return false }
        peakBytes = bytes
        return true
    }
}
