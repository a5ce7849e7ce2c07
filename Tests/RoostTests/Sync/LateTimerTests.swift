import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

extension SyncDriver {
    /// Is nudged, and wakes for expired timers before it has handled the nudge.
    fileprivate func nudge(asItWakesAfter pause: Duration, on clock: ManualClock) async {
        inputs.append(.nudge)
        clock.advance(by: pause)
        await wokeForTimers()
        await rest()
    }
}

@Suite("Connection: late timers", .timeLimit(.minutes(5)))
struct LateTimerTests {
    @Test("R08 a connection whose timer expires just when it is nudged isn't abandoned: the nudge's own time has yet to pass")
    func nudged() async throws {
        let clock = ManualClock()
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = ScriptedServer { _ in .nothing }
        configuration.clock = clock
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        // Half of the server's ping interval.
        await chat.driver.nudge(asItWakesAfter: .seconds(15), on: clock)
        #expect(await chat.driver.machine?.phase == .online)
        #expect(await chat.driver.machine?.isBeingProbed == true)
        await chat.driver.nudge(asItWakesAfter: .seconds(5), on: clock)
        #expect(await chat.driver.machine?.phase != .online)
        await chat.disconnect()
    }
}
