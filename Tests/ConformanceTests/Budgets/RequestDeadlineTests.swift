import NIOCore
import NIOEmbedded
import Testing

@testable import RoostServer

/// How long a connection may take for a request, and how long it may stay without one. The clock is the test's.
@Suite struct RequestDeadlineTests {
    private static func connection() throws -> EmbeddedChannel {
        let limits = GatewayChannel.Configuration()
        let channel = EmbeddedChannel()
        let handler = RequestDeadlineHandler(
            requestTimeout: limits.requestTimeout, idleTimeout: limits.idleTimeout, metrics: ServerMetrics())
        try channel.pipeline.syncOperations.addHandler(handler)
        try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    /// Whether the connection is open just before so many more seconds have passed, and at their end.
    private static func isOpen(_ channel: EmbeddedChannel, around seconds: Int64) -> [Bool] {
        channel.embeddedEventLoop.advanceTime(by: .seconds(seconds - 1))
        let before = channel.isActive
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        return [before, channel.isActive]
    }

    @Test("R21 a request has 30 seconds from its first byte to its last, however often a byte comes")
    func slowRequest() throws {
        let silent = try Self.connection()
        #expect(Self.isOpen(silent, around: 30) == [true, false])

        let slow = try Self.connection()
        for _ in 0..<29 {
            try slow.writeInbound(ByteBuffer(string: "x"))
            slow.embeddedEventLoop.advanceTime(by: .seconds(1))
        }
        #expect(Self.isOpen(slow, around: 1) == [true, false])
    }

    @Test("R21 a connection stays for 60 seconds between requests, and the next one has 30 again")
    func betweenRequests() throws {
        let idle = try Self.connection()
        try idle.writeInbound(ByteBuffer(string: "a request"))
        try idle.writeOutbound(ByteBuffer(string: "its answer"))
        #expect(Self.isOpen(idle, around: 60) == [true, false])

        let busy = try Self.connection()
        try busy.writeInbound(ByteBuffer(string: "a request"))
        try busy.writeOutbound(ByteBuffer(string: "its answer"))
        busy.embeddedEventLoop.advanceTime(by: .seconds(59))
        try busy.writeInbound(ByteBuffer(string: "the next one"))
        #expect(Self.isOpen(busy, around: 30) == [true, false])
    }
}
