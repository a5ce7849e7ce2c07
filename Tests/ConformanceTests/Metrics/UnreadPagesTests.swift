import Logging
import NIOCore
import NIOEmbedded
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// How many pages `/metrics` strangers can make the server hold.
@Suite struct UnreadPagesTests {
    @Test("I18 eight pages exist at a time however many are unread: further requests share the last, until one is read")
    func few() async throws {
        let pages = UnreadPages()
        let count = Atomic<Int>(0)
        let make: @Sendable () async throws -> String = { "page \(count.add(1, ordering: .relaxed).newValue)" }
        var unread: [UnreadPages.Page] = []
        for _ in 0..<20 { unread.append(try await pages.page(make)) }
        let texts = unread.map { String(buffer: $0.bytes) }
        #expect(texts == (1...8).map { "page \($0)" } + [String](repeating: "page 8", count: 12))
        unread.removeFirst()
        for _ in 0..<2 {
            unread.append(try await pages.page(make))
            #expect(unread.last.map { String(buffer: $0.bytes) } == "page 9")
        }
        unread = []
        // A page that is read before the next request is never served again.
        for number in 10..<30 {
            let page = try await pages.page(make)
            #expect(String(buffer: page.bytes) == "page \(number)")
        }
    }

    @Test("I18 a page counts until its client has it; while there are too many, clients that leave one unread are disconnected")
    func closed() async throws {
        let pages = UnreadPages()
        let make: @Sendable () async throws -> String = { String(repeating: "x", count: 5000) }
        for count in [UnreadPages.countMax - 1, UnreadPages.countMax] {
            var unread: [UnreadPages.Page] = []
            for _ in 0..<count { unread.append(try await pages.page(make)) }
            try Self.leaveUnread(&unread, areTooMany: count == UnreadPages.countMax)
        }
    }

    @Test(
        "I18 pages are made one at a time, the first too: requests that arrive meanwhile share it, and the last one made is the newest"
    )
    func together() async throws {
        let pages = UnreadPages()
        let begun = Atomic<Int>(0)
        let running = Atomic<Int>(0)
        let overlaps = Atomic<Int>(0)
        let make: @Sendable () async throws -> String = {
            let number = begun.add(1, ordering: .relaxed).newValue
            if running.add(1, ordering: .relaxed).newValue > 1 { overlaps.add(1, ordering: .relaxed) }
            // The other requests arrive.
            for _ in 0..<100 { await Task.yield() }
            running.subtract(1, ordering: .relaxed)
            return "\(number)"
        }
        var unread = try await withThrowingTaskGroup(of: UnreadPages.Page.self) { group in
            for _ in 0..<20 { group.addTask { try await pages.page(make) } }
            var shared: [UnreadPages.Page] = []
            for try await page in group { shared.append(page) }
            return shared
        }
        for _ in 0..<UnreadPages.countMax { unread.append(try await pages.page(make)) }
        let counts = [overlaps.load(ordering: .relaxed), begun.load(ordering: .relaxed)]
        #expect(counts == [0, UnreadPages.countMax])
        #expect(unread.last.map { String(buffer: $0.bytes) } == "\(UnreadPages.countMax)")
    }

    @Test("a page that can't be made is made again for the next request")
    func failed() async throws {
        let pages = UnreadPages()
        await #expect(throws: CancellationError.self) { _ = try await pages.page { throw CancellationError() } }
        let page = try await pages.page { "page" }
        #expect(String(buffer: page.bytes) == "page")
    }

    @Test(
        "I18 a page that waits behind unread answers, however small, is left unread too, until the client reads on",
        arguments: [false, true])
    func waiting(isBegun: Bool) async throws {
        let pages = UnreadPages()
        var unread: [UnreadPages.Page] = []
        for count in 1...UnreadPages.countMax {
            let page = try await pages.page { "page" }
            unread.append(page)
            try Self.wait(with: page, isBegun: isBegun, areTooMany: count == UnreadPages.countMax)
        }
    }

    @Test(
        "I18 connections that leave /metrics unread are closed while there are too many pages, and one that reads gets the state as it is now",
        arguments: [("GET", 20), ("HEAD", 5000)])
    func hostile(method: String, count: Int) async throws {
        let server = try await WatchedServer.start()
        let before = try await server.metrics().value("roost_connections_accepted_total") ?? 0
        var requestCount = 0.0
        var hostile: [RawConnection] = []
        for _ in 0..<2 * UnreadPages.countMax {
            let connection = try await RawConnection.connect(port: server.port, isNarrow: true)
            try await connection.setReading(false)
            // The kernel takes the first few.
            connection.post(Array(String(repeating: "\(method) /metrics HTTP/1.1\r\nHost: x\r\n\r\n", count: count).utf8))
            hostile.append(connection)
            // Each connection gets some pages before the next one begins, so they come to a halt at different pages.
            for _ in 0..<10 { _ = try await server.metrics() }
            requestCount += 10
        }
        // Nothing else closes one within a minute. Those that share a page can stay once there are fewer pages. The requesting connection is open too.
        try await Polling.value {
            // While eight pages exist, each request gets the last one: the connection of the request that made it is the last it counts.
            var newPageCount = 0
            var open = Double.infinity
            while newPageCount < 10 {
                requestCount += 1
                let page = try await server.metrics()
                let accepted = (page.value("roost_connections_accepted_total") ?? 0) - before - requestCount
                guard accepted == Double(hostile.count) else { break }
                newPageCount += 1
                open = page.value("roost_connections", ["state": "http"]) ?? .infinity
            }
            return (newPageCount: newPageCount, open: open)
        } until: {
            $0.newPageCount == 10 && $0.open <= Double(hostile.count)
        }
        #expect(try await server.metrics().value("roost_held_bytes") == 0)
        for connection in hostile { await connection.close() }
        try await Polling.value {
            try await server.metrics().value("roost_connections", ["state": "http"])
        } until: {
            $0 == 1
        }
        try await server.stop()
    }

    /// Synchronous, like ``leaveUnread(_:areTooMany:)``.
    private static func wait(with page: UnreadPages.Page, isBegun: Bool, areTooMany: Bool) throws {
        let connections = Connections(
            limits: ConnectionCounts.Configuration(), memoryBytesMax: 8 << 20, logger: Logger(label: "test"))
        for isRead in [true, false] {
            let channel = EmbeddedChannel()
            let ticket = connections.accept(channel)
            try channel.pipeline.syncOperations.addHandler(SlowReaderHandler(ticket: ticket, readStallTimeout: .zero))
            try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
            // The client leaves other answers unread, so this one's task waits before its head is written, or after.
            channel.isWritable = false
            channel.pipeline.fireChannelWritabilityChanged()
            ticket.requestBegan()
            ticket.answers(with: page)
            ticket.answerFollows()
            if isBegun { ticket.answerBegan() }
            if isRead {
                channel.isWritable = true
                channel.pipeline.fireChannelWritabilityChanged()
            }
            channel.embeddedEventLoop.advanceTime(by: .seconds(1))
            #expect(channel.isActive == (isRead || !areTooMany))
            _ = try channel.finish(acceptAlreadyClosed: true)
        }
    }

    /// Synchronous, because the connections and their clock belong to one thread.
    private static func leaveUnread(_ pages: inout [UnreadPages.Page], areTooMany: Bool) throws {
        let connections = Connections(
            limits: ConnectionCounts.Configuration(), memoryBytesMax: 8 << 20, logger: Logger(label: "test"))
        weak let first = pages.first
        var channels: [EmbeddedChannel] = []
        var writes: [EventLoopPromise<Void>] = []
        while !pages.isEmpty {
            let channel = EmbeddedChannel()
            let ticket = connections.accept(channel)
            try channel.pipeline.syncOperations.addHandler(SlowReaderHandler(ticket: ticket, readStallTimeout: .zero))
            try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
            let page = pages.removeFirst()
            ticket.requestBegan()
            ticket.answers(with: page)
            ticket.answerFollows()
            ticket.answerBegan()
            let write = channel.eventLoop.makePromise(of: Void.self)
            channel.write(IOData.byteBuffer(page.bytes), promise: write)
            writes.append(write)
            ticket.answerEnded()
            channels.append(channel)
        }
        for channel in channels {
            channel.embeddedEventLoop.advanceTime(by: .seconds(1))
            #expect(channel.isActive == !areTooMany)
        }
        #expect(first != nil)
        // The clients have read them, or are gone: either completes the writes.
        for write in writes { write.succeed(()) }
        #expect(first == nil)
        for channel in channels { _ = try channel.finish(acceptAlreadyClosed: true) }
    }
}
