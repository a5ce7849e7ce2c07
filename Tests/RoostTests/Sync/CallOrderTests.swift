import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: the order of calls", .timeLimit(.minutes(5)))
struct CallOrderTests {
    @Test("R24 while a message waits to be confirmed, other calls go on, whatever the channel")
    func confirmation() async throws {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let waiting = Task { try await chat.channel("general").sendConfirmed("1") }
        let list = await chat.outbox
        try await until { await !list.entries.isEmpty }
        try await chat.channel("general").send("2")
        await #expect(throws: RoostError.self) { try await chat.call(GetMe()) }
        try await until { await list.entries.count == 2 }
        waiting.cancel()
        _ = await waiting.result
    }

    @Test("calls go in the order in which they took their turns, whichever of them is ready first, and also past those that fail")
    func order() async {
        let order = CallOrder()
        let (sent, continuation) = AsyncStream.makeStream(of: Int.self)
        var turns = (0..<200).map { (number: $0, turn: order.take()) }
        await withTaskGroup(of: Void.self) { group in
            while let (number, turn) = turns.popLast() {
                group.addTask {
                    if number.isMultiple(of: 3) { await letOthersRun(1) }
                    await turn.comes()
                    // One that fails never passes its turn on, but lets go of it.
                    guard !number.isMultiple(of: 7) else { return }
                    continuation.yield(number)
                    turn.pass()
                }
            }
        }
        continuation.finish()
        var numbers: [Int] = []
        for await number in sent { numbers.append(number) }
        #expect(numbers == (0..<200).filter { !$0.isMultiple(of: 7) })
    }
}
