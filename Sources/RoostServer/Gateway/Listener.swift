import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import RoostAPI
import Synchronization

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

/// Answers HTTP requests through the rules and routes: what Hummingbird's `Application` does, except for listening.
enum Responding {
    static func responder(_ routes: HTTPRules, logger: Logger) -> HTTPChannelHandler.Responder {
        let date = HTTPDate()
        return { (request, writer: consuming ResponseWriter, channel) in
            let context = BasicRequestContext(source: .init(channel: channel, logger: logger))
            let ticket = ConnectionTicket.current
            ticket?.requestBegan()
            var response: Response
            do {
                response = try await routes.respond(to: request, context: context)
            } catch {
                logger.error("A request failed.", metadata: ["error": "\(error)"])
                response = Problem(.internalFailure).response
            }
            response.headers[.date] = date.text
            ticket?.answerFollows()
            try await writer.write(response: response.head, body: response.body)
        }
    }
}

/// The time as a `Date` header has it (RFC 9110 §5.6.7), formatted once a second.
final class HTTPDate: Sendable {
    private let last = Mutex<(second: Int, text: String)>((0, ""))

    var text: String {
        let second = Int(Date().timeIntervalSince1970)
        return last.withLock { last in
            if last.second != second { last = (second, Self.text(of: second)) }
            return last.text
        }
    }

    static func text(of second: Int) -> String {
        var time = time_t(second)
        var parts = tm()
        gmtime_r(&time, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = days[Int(parts.tm_wday) % 7]
        let month = months[Int(parts.tm_mon) % 12]
        return "\(day), \(two(parts.tm_mday)) \(month) \(parts.tm_year + 1900) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
