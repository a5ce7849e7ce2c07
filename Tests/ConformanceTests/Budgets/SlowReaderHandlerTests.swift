import Logging
import NIOCore
import NIOEmbedded
import RoostAPI
import Testing

@testable import RoostServer

/// Which connections over HTTP are closed while the server is short of memory.
@Suite struct SlowReaderHandlerTests {
    private static let half = 4 << 20

    @Test(
        "I18 from half of the memory budget on, a client that leaves answers unread is disconnected, also if they are small or shared",
        arguments: [half - 1, half], [false, true])
    func uncounted(heldBytes: Int, isRead: Bool) throws {
        let connections = Self.connections(holding: heldBytes)
        let (channel, _) = try Self.connect(to: connections)
        channel.isWritable = false
        channel.pipeline.fireChannelWritabilityChanged()
        if isRead {
            channel.isWritable = true
            channel.pipeline.fireChannelWritabilityChanged()
        }
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(channel.isActive == (isRead || heldBytes < Self.half))
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test(
        "I18 an answer counts until its client has read it, and from half of the memory budget on a client that doesn't is disconnected",
        arguments: [0, half])
    func counted(heldBytes: Int) throws {
        let connections = Self.connections(holding: heldBytes)
        let (channel, ticket) = try Self.connect(to: connections)
        ticket.requestBegan()
        ticket.requestBelongs(to: "ann")
        ticket.answerFollows()
        ticket.answerBegan()
        let write = channel.eventLoop.makePromise(of: Void.self)
        channel.write(IOData.byteBuffer(ByteBuffer(repeating: 0, count: SlowReaderHandler.countedBytesMin)), promise: write)
        ticket.answerEnded()
        #expect(connections.memory.heldBytes == heldBytes + SlowReaderHandler.countedBytesMin)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(channel.isActive == (heldBytes == 0))
        // The client has read it, or is gone: either completes the write.
        write.succeed(())
        #expect(connections.memory.heldBytes == heldBytes)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    private static func connections(holding heldBytes: Int) -> Connections {
        let connections = Connections(
            limits: ConnectionCounts.Configuration(), memoryBytesMax: 2 * half, logger: Logger(label: "test"))
        connections.memory.add(heldBytes)
        return connections
    }

    private static func connect(to connections: Connections) throws -> (EmbeddedChannel, ConnectionTicket) {
        let channel = EmbeddedChannel()
        let ticket = connections.accept(channel)
        try channel.pipeline.syncOperations.addHandler(SlowReaderHandler(ticket: ticket, readStallTimeout: .zero))
        try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
        return (channel, ticket)
    }
}
