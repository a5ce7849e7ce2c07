import Logging
import RoostAPI
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// The limit on the process's memory: how much may be held for clients near it.
@Suite struct MemoryLimitTests {
    private static let mebibyte = 1 << 20
    private static let governor = MemoryGovernor(limitBytes: 512 * mebibyte, budgetBytes: 256 * mebibyte)

    private static func decide(resident: Int, held: Int) -> MemoryGovernor.Decision {
        governor.decide(residentBytes: resident * mebibyte, heldBytes: held * mebibyte)
    }

    @Test("I18 far from the limit the budget applies, and near it half of the rest may be held in addition")
    func room() {
        let far = Self.decide(resident: 60, held: 10)
        #expect(far == .init(heldBytesMax: (10 + (448 - 60) / 2) * Self.mebibyte, takesConnections: true, shouldTrim: false))
        #expect(Self.decide(resident: 60, held: 100).heldBytesMax == 256 * Self.mebibyte)
        let near = Self.decide(resident: 428, held: 200)
        #expect(near == .init(heldBytesMax: 210 * Self.mebibyte, takesConnections: true, shouldTrim: true))
    }

    @Test("I18 past the limit less may be held than is held, no connection is served, and every client is still answered")
    func past() {
        let past = Self.decide(resident: 548, held: 200)
        #expect(past == .init(heldBytesMax: 150 * Self.mebibyte, takesConnections: false, shouldTrim: true))
        #expect(Self.decide(resident: 900, held: 1).heldBytesMax == MemoryGovernor.heldBytesMin)
        #expect(Self.decide(resident: 900, held: -1).heldBytesMax == MemoryGovernor.heldBytesMin)
    }

    @Test("I18 after a storm the allocator returns memory once, and a few clients that leave aren't a storm")
    func storm() {
        var load = ClientLoad()
        let storm = 5000
        var falls: [Bool] = []
        for connections in [20, storm, storm * 3 / 5, storm / 3, storm / 4, 20, 20, 900, 20] {
            falls.append(load.hasFallen(heldBytes: connections == storm ? 24 * Self.mebibyte : 0, connections: connections))
        }
        // 63 MiB at the peak, 23 without what was held and two connections of five, then 10, then nearly none.
        #expect(falls == [false, false, true, false, true, true, false, false, false])
        // Held bytes count without a connection, and a sum that is briefly below 0 counts as none.
        falls = [40 * Self.mebibyte, -1].map { load.hasFallen(heldBytes: $0, connections: 0) }
        #expect(falls == [false, true])
    }

    @Test("I18 memory is returned each time the process has grown by 2 MiB, or a thirty-second, since the last time")
    func growth() {
        var growth = MemoryGrowth()
        #expect([60, 61, 62].map { growth.hasGrown(to: $0 * Self.mebibyte) } == [false, false, true])
        growth.trimmed(to: 61 * Self.mebibyte)
        #expect([62, 63].map { growth.hasGrown(to: $0 * Self.mebibyte) } == [false, true])
        // Memory in use stays, and isn't searched for again and again.
        growth.trimmed(to: 63 * Self.mebibyte)
        #expect([64, 40, 41, 42].map { growth.hasGrown(to: $0 * Self.mebibyte) } == [false, false, false, true])
        growth.trimmed(to: 320 * Self.mebibyte)
        #expect([329, 330].map { growth.hasGrown(to: $0 * Self.mebibyte) } == [false, true])
    }

    @Test("I18 a limit that no server can keep is refused, and one that it can keep is reported")
    func setting() async throws {
        let refusal = await #expect(throws: RoostError.self) {
            _ = try await TestServer { $0.memoryLimitBytes = 127 * Self.mebibyte }
        }
        #expect(refusal?.code == .invalidArgument)
        #expect(refusal?.message.contains("128 MiB") == true)
        // At rest a server is far below it.
        let server = try await TestServer {
            $0.memoryLimitBytes = 4096 * Self.mebibyte
            $0.memoryBudgetBytes = 16 * Self.mebibyte
        }
        try await Polling.value {
            try MetricsText(try await server.request("GET", "/metrics").body).value("roost_held_bytes_max")
        } until: {
            $0 == Double(16 * Self.mebibyte)
        }
        try await server.stop()
    }

    @Test("I18 without memory a connection is for health checks only, counted and logged by the limit's name")
    func connections() async throws {
        // The server is in this process, which takes more memory than allowed.
        let ballast = [UInt8](repeating: 1, count: 160 * Self.mebibyte)
        let lines = Mutex<[String]>([])
        let logger = Logger(label: "test", factory: { _ in LogLines { line in lines.withLock { $0.append(line) } } })
        ProcessCounts.begin()
        let server = try await TestServer(logger: logger) { $0.memoryLimitBytes = 128 * Self.mebibyte }
        let refused = try await Polling.value {
            try await server.request("GET", "/v1/me")
        } until: {
            $0.status == 503
        }
        #expect(refused.code == "overloaded")
        #expect(try await server.request("GET", "/livez").status == 200)
        await #expect(throws: (any Error).self) { try await server.socket("ann") }
        // Three at least: the one that was refused, the health check's, and the socket's.
        #expect(try ProcessCounts.page().value("roost_connections_refused_total", ["reason": "memory"]) ?? 0 >= 3)
        let logged = lines.withLock { $0 }
        #expect(logged.contains { $0.contains("limit=memory-limit") && $0.contains("address=127.0.0.1") })
        withExtendedLifetime(ballast) {}
        try await server.stop()
    }
}
