import RoostAPI
import Testing

@testable import RoostServer

/// When a node stops following a stream that none of its sockets needs.
@Suite("Unused feeds of a relay")
struct UnusedFeedTests {
    private let stream = StreamID.channel("c")

    @Test(
        "a feed that no socket needs is unused as of the request: a later need keeps it, however late the answer arrives",
        arguments: [false, true])
    func lateAnswer(isNeeded: Bool) {
        var relay = Relay()
        relay.follow(stream)
        relay.handle(.opened([stream: 5]), at: 1)
        _ = relay.takeOutput()
        relay.handle(.tick, at: 6000)
        #expect(relay.takeOutput().requests.contains(.findUnused([stream], asOf: 6000)))
        relay.handle(.received([]), at: 6050)
        if isNeeded { relay.follow(stream) }
        // The event loop was busy.
        relay.handle(.unused([stream], asOf: 6000), at: 12_000)
        #expect(relay.takeOutput().requests.contains(.close([stream])) == !isNeeded)
        guard isNeeded else { return }
        // It is asked again, and closed by that answer.
        relay.handle(.tick, at: 13_000)
        #expect(relay.takeOutput().requests.contains(.findUnused([stream], asOf: 13_000)))
        relay.handle(.unused([stream], asOf: 13_000), at: 13_001)
        #expect(relay.takeOutput().requests.contains(.close([stream])))
    }
}
