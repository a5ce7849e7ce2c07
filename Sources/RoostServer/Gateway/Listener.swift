import Foundation
import Logging
import NIOCore
import NIOPosix

/// The port: accepts connections and hands each to the gateway, until it is closed.
///
/// It accepts every connection, even above the limits and during shutdown: clients that aren't served get a refusal (see ``Connections``).
struct Listener: Sendable {
    let group: MultiThreadedEventLoopGroup
    let gateway: GatewayChannel
    let logger: Logger

    /// Binds the port.
    func bind(host: String, port: Int) async throws -> any NIOCore.Channel {
        let (gateway, logger) = (gateway, logger)
        return try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptPauseHandler(metrics: gateway.services.metrics, logger: logger))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // The bytes of one read have to be held if they can't be decoded yet.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(.recvAllocator, value: ReadBuffers.ofRequests)
            .childChannelInitializer { channel in
                gateway.setup(channel: channel, logger: logger).map { value in
                    value.upgrade.whenComplete { upgrade in
                        // A socket lives on its event loop, and the hub knows it: a task would only cost memory.
                        if case .success(.socket) = upgrade { return }
                        let connections = gateway.services.connections
                        connections.handlerBegan()
                        Task {
                            await gateway.handle(value: value, logger: logger)
                            connections.handlerEnded()
                        }
                    }
                }
            }
            .bind(host: host, port: port).get()
    }
}

/// Pauses briefly when the process can't open more files, instead of accepting again at once: the kernel keeps reporting a waiting
/// connection.
private final class AcceptPauseHandler: ChannelInboundHandler {
    typealias InboundIn = any NIOCore.Channel

    private static let pause = TimeAmount.milliseconds(100)
    private let logger: Logger
    private let lines = LogThrottle()
    private let metrics: ServerMetrics
    private var isPaused = false

    init(metrics: ServerMetrics, logger: Logger) {
        self.metrics = metrics
        self.logger = logger
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let failure = error as? IOError else { return context.fireErrorCaught(error) }
        metrics.acceptFailed()
        guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(failure.errnoCode) else { return }
        if lines.shouldLog() {
            logger.error(
                "Couldn't accept a connection: the limit on open files or memory is reached. Raise it, or lower connections-max.",
                metadata: ["error": "\(failure)"])
        }
        guard !isPaused else { return }
        isPaused = true
        let channel = context.channel
        try? channel.syncOptions?.setOption(.autoRead, value: false)
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) {
            handler.value.isPaused = false
            try? channel.syncOptions?.setOption(.autoRead, value: true)
        }
    }
}
