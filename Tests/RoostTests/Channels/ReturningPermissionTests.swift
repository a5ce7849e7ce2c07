import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// A permission that returns by the server's clock.
@MainActor @Suite("Channels: permissions that come back", .timeLimit(.minutes(5)))
struct ReturningPermissionTests {
    private func time(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: seconds * 1000) }

    @Test(
        "AM-07 AM-48 the server is asked again at growing intervals, for an hour, until the permission is back; each end starts over"
    )
    func pauses() {
        var returning = PermissionRecheck()
        var pauses: [Duration] = []
        while let pause = returning.pause(hasReturned: false, since: time(5)) {
            #expect(returning.shouldAsk(since: time(5)))
            pauses.append(pause)
        }
        #expect(pauses.prefix(4) == [.seconds(1), .seconds(2), .seconds(4), .seconds(8)])
        #expect(pauses.reduce(.zero, +) == .seconds(4095))
        #expect([5, 4, 6].map { returning.shouldAsk(since: time($0)) } == [false, false, true])
        #expect(returning.pause(hasReturned: false, since: time(6)) == .seconds(1))
        #expect(returning.pause(hasReturned: true, since: time(6)) == nil)
        #expect([6, 7].map { returning.shouldAsk(since: time($0)) } == [false, true])
    }

    @Test("AM-07 AM-48 if this device's clock is ahead, a user may send again once the server allows it")
    func clockAhead() async throws {
        let clock = ManualClock()
        clock.advance(by: .seconds(100))
        var silenced = channel(counters(3, messages: 0))
        silenced.mutedUntil = time(50)
        let own = membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1)
        let mayNot = ChannelView(channel: silenced, membership: own, ownCapabilities: [.channelRead])
        let may = ChannelView(channel: silenced, membership: own, ownCapabilities: [.channelRead, .messageSend])
        let isOver = Atomic(false)
        let server = ScriptedServer { call in
            guard call.operation == "channel.get" else { return .error(.notFound("operation")) }
            return .result(isOver.load(ordering: .relaxed) ? may : mayNot)
        }
        let chat = try await server.connectedInGeneral(clock)
        let live = chat.channel("general")
        try await until { live.membership != nil }
        try await chat.driver.prepare().store.write([
            .channel(silenced),
            .capabilities("general", Capabilities.Own(permissions: [.channelRead], userSeq: 1, channelSeq: 3)),
        ])
        func asked() async -> Int { await server.operations().count { $0 == "channel.get" } }
        for (pause, count) in [(1, 1), (2, 2), (4, 3)] {
            try await until { await asked() == count }
            let end = clock.timestamp.milliseconds / 1000 + Int64(pause)
            try await until { clock.ends.contains(.seconds(end)) }
            if count == 3 { isOver.store(true, ordering: .relaxed) }
            clock.advance(by: .seconds(pause))
        }
        try await until { live.hasPermission(.messageSend) }
        #expect(await asked() == 4)
        await chat.disconnect()
    }
}
