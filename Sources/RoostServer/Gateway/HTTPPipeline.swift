import NIOCore
import NIOHTTP1

/// The handlers between a connection's bytes and the HTTP server or the socket.
enum HTTPPipeline {
    /// Adds the handlers, outermost first: unread bytes, deadlines, NIO's encoder and decoder, rules on heads, the connection's limits, NIO's
    /// upgrade handler.
    ///
    /// - Parameter ticket: The connection's ticket; nil if connections aren't counted.
    static func install<Result: Sendable>(
        on channel: any NIOCore.Channel, limits: GatewayChannel.Configuration, metrics: ServerMetrics,
        ticket: ConnectionTicket? = nil, origins: AllowedOrigins = .none,
        upgrade: NIOTypedHTTPServerUpgradeConfiguration<Result>
    ) throws -> EventLoopFuture<Result> {
        var pipeline = NIOUpgradableHTTPServerPipelineConfiguration(upgradeConfiguration: upgrade)
        pipeline.enablePipelining = false
        pipeline.enableErrorHandling = false
        pipeline.enableResponseHeaderValidation = false
        pipeline.decoderConfiguration.maxHeaderFieldCount = limits.headerCountMax
        pipeline.decoderConfiguration.maxHeaderFieldSize = limits.headerFieldSizeBytesMax
        pipeline.decoderConfiguration.maxHeaderListSize = limits.headerListSizeBytesMax
        // The deadline comes first: it sees bytes as they arrive, before they are decoded.
        let isReserve = ticket?.isReserve == true
        let front = RequestDeadlineHandler(
            requestTimeout: isReserve ? limits.reserveTimeout : limits.requestTimeout,
            idleTimeout: isReserve ? limits.reserveTimeout : limits.idleTimeout, metrics: metrics)
        let operations = channel.pipeline.syncOperations
        if let ticket {
            try operations.addHandler(SlowReaderHandler(ticket: ticket, readStallTimeout: limits.readStallTimeoutUnderPressure))
        }
        try operations.addHandler(front)
        let result = try operations.configureUpgradableHTTPServerPipeline(configuration: pipeline)
        let decoder = try operations.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        let heads = RequestHeadHandler(front: front, limits: limits, metrics: metrics, origins: origins)
        try operations.addHandler(heads, position: .after(decoder))
        if let ticket { try operations.addHandler(ConnectionHandler(ticket: ticket, origins: origins), position: .after(heads)) }
        return result
    }

    /// Removes the HTTP handlers once the connection is a socket. NIO has already removed its own.
    static func uninstall(from channel: any NIOCore.Channel) throws {
        let operations = channel.pipeline.syncOperations
        for handler in try [
            operations.handler(type: RequestDeadlineHandler.self) as any RemovableChannelHandler,
            operations.handler(type: RequestHeadHandler.self),
        ] {
            operations.removeHandler(handler, promise: nil)
        }
        // A standalone connection, as in tests, has neither of these.
        if let handler = try? operations.handler(type: ConnectionHandler.self) { operations.removeHandler(handler, promise: nil) }
        if let handler = try? operations.handler(type: SlowReaderHandler.self) { operations.removeHandler(handler, promise: nil) }
    }
}
