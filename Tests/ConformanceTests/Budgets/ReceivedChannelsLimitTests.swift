import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// How many channels all sockets of a user get together, as clients see it.
@Suite("Channels of all sockets of a user")
struct ReceivedChannelsLimitTests {
    @Test("ST-01 I18 beyond the channels that all sockets of a user may get together, a watch is refused and a socket closed")
    func together() async throws {
        let files = try TestDatabase()
        let sockets = try await SocketLoop(try files.open(), receivedMax: 4)
        let (bob, ann) = (try await sockets.socket("bob"), try await sockets.socket("ann"))
        try await bob.call(CreateChannel(channel: "other", type: .livestream))
        for channel in ["a", "b"] as [ChannelID] { try await ann.call(CreateChannel(channel: channel)) }
        // Her two sockets get two channels each.
        let phone = try await sockets.socket("ann")
        let refusal = await #expect(throws: RoostError.self) {
            try await ann.call(WatchChannel(channel: "other", limit: 0))
        }
        #expect(refusal?.code == .limitExceeded && refusal?.limit == 4)
        #expect(try await bob.call(ListWatchers(channel: "other")).watcherCount == 0)
        // The socket gets this one anyway.
        try await ann.call(WatchChannel(channel: "a", limit: 0))
        #expect(try await phone.call(ListWatchers(channel: "a")).watcherCount == 1)

        let tablet = try await sockets.socket("ann")
        guard case .text(let error) = await tablet.next() else { throw Missed("an error") }
        #expect(error.contains(#""code":"overloaded""#))
        #expect(await tablet.next() == .close(code: 4029, reason: "overloaded"))
        try await sockets.end(closing: bob, ann, phone, tablet)
    }

    @Test("I18 ten sockets of a user may get all channels that the user may be in or watch")
    func standard() {
        #expect(Hub.receivedMax(channelsPerUser: 1) == 10 * Limits.watchedChannels)
        #expect(Hub.receivedMax(channelsPerUser: Limits.watchedChannels + 1) == 10 * Limits.watchedChannels + 10)
    }
}
