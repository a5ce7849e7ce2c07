import Foundation
import RoostAPI

/// One socket that calls operations one after another, with some under way at a time, and their cost to the server.
struct CallLoad {
    let loop: LoadLoop
    let server: BenchServer
    /// The caller's place among the loop's sockets.
    let socket: Int

    struct Result {
        let calls: Int
        let seconds: Double
        let cpuMicroseconds: Double
        var cpuPerCall: Double { cpuMicroseconds / Double(max(1, calls)) }
    }

    /// Calls as many operations as given, made by the closure. A refusal ends the benchmark.
    func run(
        _ count: Int, window: Int = 1, timeout: Double = 600, _ call: @escaping (LoadSocket, Int) throws -> Void
    ) throws
        -> Result
    {
        let caller = loop.sockets[socket]
        var asked = 0
        var answered = 0
        func ask() throws {
            try call(caller, asked)
            asked += 1
        }
        loop.onFrame = { from, frame, _ in
            guard from === caller, case .reply = frame else { return }
            answered += 1
            if asked < count { try ask() }
        }
        defer { loop.onFrame = { _, _, _ in } }
        let before = server.usage
        let start = Clock.now()
        for _ in 0..<min(window, count) { try ask() }
        try loop.run(timeout: timeout) { answered == count }
        let seconds = Double(Clock.now() - start) / 1e9
        return Result(calls: count, seconds: seconds, cpuMicroseconds: server.usage.cpuMicroseconds(since: before))
    }

    /// Calls the same operation repeatedly.
    func repeating(_ operation: some RoostAPI.Operation, _ count: Int) throws -> Result {
        try run(count) { socket, _ in _ = try socket.call(operation) }
    }
}
