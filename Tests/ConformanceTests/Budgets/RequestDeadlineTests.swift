import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import RoostServer

/// How long a connection may take for a request, and how long it may be idle. The clock is the test's.
@Suite struct RequestDeadlineTests {
    private static func connection(waiting: @escaping () -> Int = { 0 }) throws -> EmbeddedChannel {
        let limits = GatewayChannel.Configuration()
        let channel = EmbeddedChannel()
        let handler = RequestDeadlineHandler(
            requestTimeout: limits.requestTimeout, idleTimeout: limits.idleTimeout, metrics: ServerMetrics(),
            waitingBytes: { _ in WaitingBytes(channelBytes: waiting()) })
        try channel.pipeline.syncOperations.addHandler(handler)
        try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    /// A connection whose requests are read.
    private static func served(waiting: @escaping () -> Int = { 0 }) throws -> EmbeddedChannel {
        let limits = GatewayChannel.Configuration()
        let channel = EmbeddedChannel()
        let front = RequestDeadlineHandler(
            requestTimeout: limits.requestTimeout, idleTimeout: limits.idleTimeout, metrics: ServerMetrics(),
            waitingBytes: { _ in WaitingBytes(channelBytes: waiting()) })
        try channel.pipeline.syncOperations.addHandlers([
            front, HTTPResponseEncoder(), ByteToMessageHandler(HTTPRequestDecoder()),
            RequestHeadHandler(front: front, limits: limits, metrics: ServerMetrics()),
        ])
        try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    private static func answer(on channel: EmbeddedChannel) throws {
        let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["content-length": "0"])
        try channel.writeOutbound(HTTPServerResponsePart.head(head))
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
    }

    /// Whether the connection is open just before this many more seconds have passed, and at their end.
    private static func isOpen(_ channel: EmbeddedChannel, around seconds: Int64) -> [Bool] {
        channel.embeddedEventLoop.advanceTime(by: .seconds(seconds - 1))
        let before = channel.isActive
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        return [before, channel.isActive]
    }

    @Test("I21 a request has 30 seconds from its first byte to its last, however often a byte arrives")
    func slowRequest() throws {
        let silent = try Self.connection()
        #expect(Self.isOpen(silent, around: 30) == [true, false])

        let slow = try Self.connection()
        for _ in 0..<29 {
            try slow.writeInbound(ByteBuffer(string: "x"))
            slow.embeddedEventLoop.advanceTime(by: .seconds(1))
        }
        #expect(Self.isOpen(slow, around: 1) == [true, false])

        // Nor does "100 Continue" extend the deadline.
        let asking = try Self.served()
        let head = "PUT /v1/me HTTP/1.1\r\nhost: example.org\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        try asking.writeInbound(ByteBuffer(string: head))
        let word = try asking.readOutbound(as: ByteBuffer.self).map { String(buffer: $0) }
        #expect(word?.hasPrefix("HTTP/1.1 100 ") == true)
        asking.embeddedEventLoop.advanceTime(by: .seconds(29))
        try asking.writeInbound(ByteBuffer(string: "{"))
        #expect(Self.isOpen(asking, around: 1) == [true, false])
    }

    @Test("I21 a connection stays for 60 seconds between requests, and the next one has 30 again")
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

    @Test("I21 a request that has arrived isn't cut off while it is processed: it may wait for a lock for up to 10 minutes")
    func arrivedRequest() throws {
        for isWhole in [true, false] {
            let channel = try Self.served()
            let request = "PUT /v1/me HTTP/1.1\r\nhost: example.org\r\ncontent-length: 2\r\n\r\n{"
            try channel.writeInbound(ByteBuffer(string: request + (isWhole ? "}" : "")))
            guard isWhole else {
                #expect(Self.isOpen(channel, around: 30) == [true, false])
                continue
            }
            channel.embeddedEventLoop.advanceTime(by: .minutes(10))
            #expect(channel.isActive)
            try Self.answer(on: channel)
            #expect(Self.isOpen(channel, around: 60) == [true, false])
        }
    }

    @Test("I21 a pipelined request that has arrived whole isn't cut off while it is processed, once the previous one is answered")
    func pipelinedRequest() throws {
        let request = "GET /v1/me HTTP/1.1\r\nhost: example.org\r\n\r\n"
        let channel = try Self.served()
        try channel.writeInbound(ByteBuffer(string: request + request))
        try Self.answer(on: channel)
        channel.embeddedEventLoop.advanceTime(by: .minutes(10))
        #expect(channel.isActive)
        try Self.answer(on: channel)
        #expect(Self.isOpen(channel, around: 60) == [true, false])

        // A partial request has no more time than one that hasn't begun.
        let partly = try Self.served()
        try partly.writeInbound(
            ByteBuffer(string: request + "PUT /v1/me HTTP/1.1\r\nhost: example.org\r\ncontent-length: 2\r\n\r\n{"))
        try Self.answer(on: partly)
        #expect(Self.isOpen(partly, around: 60) == [true, false])
    }

    @Test("I21 an answer that is read slowly isn't cut off: the idle time begins when it has been read")
    func slowAnswer() throws {
        var left = 1000
        let slow = try Self.connection { left }
        try slow.writeInbound(ByteBuffer(string: "a request"))
        try slow.writeOutbound(ByteBuffer(string: "its answer"))
        for _ in 0..<20 {
            slow.embeddedEventLoop.advanceTime(by: .seconds(45))
            left -= 50
        }
        #expect(slow.isActive && left == 0)
        // Checked every 15 seconds: at the second check nothing has been left for that long.
        slow.embeddedEventLoop.advanceTime(by: .seconds(15))
        #expect(Self.isOpen(slow, around: 60) == [true, false])

        left = 1000
        let stopped = try Self.connection { left }
        try stopped.writeInbound(ByteBuffer(string: "a request"))
        try stopped.writeOutbound(ByteBuffer(string: "its answer"))
        stopped.embeddedEventLoop.advanceTime(by: .seconds(20))
        left = 900
        stopped.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(Self.isOpen(stopped, around: 60) == [true, false])
    }

    @Test("I21 a request after an unread answer gives the client no more time to read it")
    func requestBehindAnswer() throws {
        let request = ByteBuffer(string: "GET /v1/me HTTP/1.1\r\nhost: example.org\r\n\r\n")
        for (waiting, later, isCut) in [(1000, 1000, true), (1000, 0, false), (0, 0, false)] {
            var left = waiting
            let channel = try Self.served { left }
            try channel.writeInbound(request)
            try Self.answer(on: channel)
            try channel.writeInbound(request)
            if isCut {
                #expect(Self.isOpen(channel, around: 60) == [true, false])
                continue
            }
            channel.embeddedEventLoop.advanceTime(by: .seconds(20))
            left = later
            // Processing may take as long as it needs.
            channel.embeddedEventLoop.advanceTime(by: .minutes(10))
            #expect(channel.isActive)
            try Self.answer(on: channel)
            #expect(Self.isOpen(channel, around: 60) == [true, false])
        }
    }
}
