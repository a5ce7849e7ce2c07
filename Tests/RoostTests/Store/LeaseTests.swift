import NIOConcurrencyHelpers
import Testing

@testable import Roost

@Suite("Store: files that are released while in use", .timeLimit(.minutes(5)))
struct LeaseTests {
    @Test("a database that is replaced is handed over once it is no longer in use, and later users get the new one")
    func replaces() async throws {
        let leases = Leases("old")
        let (entered, enter) = AsyncStream<Void>.makeStream()
        let (goOn, letGoOn) = AsyncStream<Void>.makeStream()
        let log = NIOLockedValueBox<[String]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await leases.use { database in
                    enter.yield()
                    for await _ in goOn { break }
                    log.withLockedValue { $0.append("used \(database)") }
                }
            }
            for await _ in entered { break }
            group.addTask {
                let former = await leases.replace(with: "new")
                log.withLockedValue { $0.append("replaced \(former)") }
            }
            // Later ones don't wait.
            try await until { await leases.use { $0 } == "new" }
            log.withLockedValue { $0.append("used new") }
            letGoOn.yield()
            try await group.waitForAll()
        }
        #expect(log.withLockedValue { $0 } == ["used new", "used old", "replaced old"])
    }

    @Test("many who use databases that are replaced all the time never use one that was handed over")
    func many() async {
        let closed = NIOLockedValueBox<Set<Int>>([])
        let wrong = NIOLockedValueBox(0)
        let leases = Leases(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<500 {
                        await leases.use { number in
                            await letOthersRun(1)
                            if closed.withLockedValue({ $0.contains(number) }) { wrong.withLockedValue { $0 += 1 } }
                        }
                    }
                }
            }
            group.addTask {
                for number in 1...500 {
                    let former = await leases.replace(with: number)
                    closed.withLockedValue { _ = $0.insert(former) }
                }
            }
        }
        #expect(wrong.withLockedValue { $0 } == 0)
    }
}
