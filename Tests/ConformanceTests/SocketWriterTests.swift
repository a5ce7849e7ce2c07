import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import RoostTestSupport
import Testing

@testable import RoostServer

/// Bytes that bypass a connection's channel while it is idle, and go through it while its client is slow.
@Suite struct SocketWriterTests {
    /// Which way each chunk took.
    private enum Way: Equatable { case past, through }

    private static func chunk(_ number: Int) -> [UInt8] {
        Array(repeating: UInt8(truncatingIfNeeded: number), count: number < 300 ? number % 20 + 1 : (number * 7919) % 9000 + 1)
    }

    /// Writes one chunk after the other, as a socket's handler writes events.
    private final class Chunks: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var writer = SocketWriter()
        private var (number, turn) = (0, 0)
        private let count: Int
        private let ways: NIOLockedValueBox<[Way]>

        init(_ count: Int, _ ways: NIOLockedValueBox<[Way]>) {
            (self.count, self.ways) = (count, ways)
        }

        func channelActive(context: ChannelHandlerContext) { writeNext(context) }

        private func writeNext(_ context: ChannelHandlerContext) {
            guard number < count else { return }
            var bytes: UnflushedBytes?
            // Several buffers at a time, sometimes more than one system call takes.
            turn += 1
            for _ in 0..<min(count - number, [1, 2, 100][turn % 3]) {
                bytes.append(ByteBuffer(bytes: SocketWriterTests.chunk(number)))
                number += 1
            }
            let rest = bytes.map { writer.write($0, to: context) } ?? []
            for piece in rest { context.write(NIOAny(piece), promise: nil) }
            if !rest.isEmpty { context.flush() }
            ways.withLockedValue { $0.append(rest.isEmpty ? .past : .through) }
            let (handler, place) = (
                NIOLoopBound(self, eventLoop: context.eventLoop), NIOLoopBound(context, eventLoop: context.eventLoop)
            )
            context.eventLoop.scheduleTask(in: .microseconds(50)) { handler.value.writeNext(place.value) }
        }
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let received: NIOLockedValueBox<[UInt8]>

        init(_ received: NIOLockedValueBox<[UInt8]>) { self.received = received }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = Array(Self.unwrapInboundIn(data).readableBytesView)
            received.withLockedValue { $0 += bytes }
        }
    }

    @Test(
        "I1 I5 no byte is lost or overtaken when a client pauses reading and resumes, and an idle socket is written to directly again"
    )
    func order() async throws {
        let (ways, received) = (NIOLockedValueBox<[Way]>([]), NIOLockedValueBox<[UInt8]>([]))
        let count = 600
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelOption(.socketOption(.so_sndbuf), value: 16_384)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Chunks(count, ways)) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelOption(.autoRead, value: false).channelOption(.socketOption(.so_rcvbuf), value: 16_384)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Collector(received)) }
            }
            .connect(to: address).get()

        let deadline = ContinuousClock.now + .seconds(20)
        while !ways.withLockedValue({ $0.contains(.through) }) {
            try #require(ContinuousClock.now < deadline, "the client reads nothing, and nothing goes through the channel")
            try await Task.sleep(for: .milliseconds(1))
        }
        let expected = (0..<count).flatMap(Self.chunk)
        while received.withLockedValue({ $0.count }) < expected.count {
            try #require(ContinuousClock.now < deadline, "\(received.withLockedValue { $0.count }) of \(expected.count) bytes came")
            client.read()
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(received.withLockedValue { $0 } == expected)
        let taken = ways.withLockedValue { $0 }
        let slow = try #require(taken.firstIndex(of: .through))
        #expect(taken.prefix(slow).contains(.past))
        try await client.close()
        try await server.close()
    }

    /// Writes one buffer, a few, and more than one call takes, and then to a closed connection.
    private final class Counting: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var writer = SocketWriter()
        private let counts: NIOLockedValueBox<[Int64]>

        init(_ counts: NIOLockedValueBox<[Int64]>) { self.counts = counts }

        func channelActive(context: ChannelHandlerContext) {
            let before = [1, 3, 150].map { callCount(ofWriting: $0, to: context) }
            context.close(promise: nil)
            let after = callCount(ofWriting: 1, to: context)
            counts.withLockedValue { $0 = before + [after] }
        }

        private func callCount(ofWriting pieceCount: Int, to context: ChannelHandlerContext) -> Int64 {
            var bytes: UnflushedBytes?
            for number in 0..<pieceCount { bytes.append(ByteBuffer(bytes: SocketWriterTests.chunk(number))) }
            if let bytes { _ = writer.write(bytes, to: context) }
            return writer.takeCallCount()
        }
    }

    @Test("each system call counts as a write: one for one or several buffers, more for many")
    func calls() async throws {
        let counts = NIOLockedValueBox<[Int64]>([])
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Counting(counts)) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(to: try #require(server.localAddress)).get()
        try await client.closeFuture.get()
        // The client may see the end before the last write is tried.
        let deadline = ContinuousClock.now + .seconds(20)
        while counts.withLockedValue({ $0.isEmpty }), ContinuousClock.now < deadline { await Task.yield() }
        #expect(counts.withLockedValue { $0 } == [1, 1, 3, 0])
        try await server.close()
    }

    /// Writes before the channel is closed, and in the same turn after it.
    private final class Closing: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var writer = SocketWriter()
        private let rests: NIOLockedValueBox<[Int]>

        init(_ rests: NIOLockedValueBox<[Int]>) { self.rests = rests }

        func channelActive(context: ChannelHandlerContext) {
            let bytes = UnflushedBytes.one(ByteBuffer(bytes: SocketWriterTests.chunk(1)))
            let first = writer.write(bytes, to: context)
            context.close(promise: nil)
            let second = writer.write(bytes, to: context)
            rests.withLockedValue { $0 = [first, second].map { $0.reduce(0) { $0 + $1.readableBytes } } }
        }
    }

    @Test("a closed connection isn't written to: its descriptor may be another's by then")
    func closed() async throws {
        let rests = NIOLockedValueBox<[Int]>([])
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Closing(rests)) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(to: try #require(server.localAddress)).get()
        try await client.closeFuture.get()
        // The client may see the end before the second write is tried.
        let deadline = ContinuousClock.now + .seconds(20)
        while rests.withLockedValue({ $0.isEmpty }), ContinuousClock.now < deadline { await Task.yield() }
        #expect(rests.withLockedValue { $0 } == [0, Self.chunk(1).count])
        try await server.close()
    }
}
