import Testing

/// The machine's clock can be set while the server runs.
@Suite("Clocks")
struct ClockTests {
    private static let server = SourceFile.sources.filter { ["RoostServer", "RoostDatabase"].contains($0.target) }

    @Test("threads of the server wait with a time limit only by MonotonicSemaphore: on Linux others wait until a time of day")
    func waiting() {
        let timed =
            /\bNSCondition(Lock)?\b|\.wait\((timeout|wallTimeout|until):|\block\(before:|sleep\(until: *Date|pthread_cond_timed|\bsem_timed|\bRunLoop\b|\bDispatchWallTime\b|wallDeadline/
        let wrong = Self.server.flatMap { file in
            // A group of Dispatch waits for a duration.
            file.places(of: timed) { file.path.hasSuffix("Service/Threads.swift") && $0.contains("running.wait(timeout:") }
        }
        #expect(wrong == [])
        let semaphores = Self.server.filter { $0.target == "RoostServer" }.flatMap { $0.places(of: /\bDispatchSemaphore\b/) }
        #expect(semaphores == [])
        #expect(Self.server.flatMap { $0.places(of: /\bMonotonicSemaphore\(/) }.count > 5)
    }

    @Test("no time limit of the server is a date")
    func limits() {
        let dates = /timeIntervalSinceNow|Date\(\) *[<>]|[<>]=? *Date\(\)|addingTimeInterval|timeIntervalSince\(/
        #expect(Self.server.flatMap { $0.places(of: dates) } == [])
    }

    @Test("the server reads milliseconds that don't follow the time of day only from MonotonicClock")
    func milliseconds() {
        let reading = /uptimeNanoseconds *\/ *1_000_000\b/
        let found = Self.server.filter { !$0.places(of: reading).isEmpty }.map(\.path)
        #expect(found == ["Sources/RoostServer/Service/MonotonicClock.swift"])
    }

    @Test("a date becomes a timestamp in one place, which takes dates that are out of range too")
    func conversions() {
        #expect(SourceFile.sources.flatMap { $0.places(of: /Int64\(.*timeIntervalSince1970 \* 1000/) } == [])
    }
}
