import NIOCore
import NIOHTTP1

/// The handlers between a connection's bytes and what serves HTTP or becomes a socket.
enum HTTPPipeline {
    /// Adds them, outermost first: the deadline, NIO's encoder and decoder, the rules on heads, NIO's upgrade handler.
    static func install<Result: Sendable>(
        on channel: any NIOCore.Channel, limits: GatewayChannel.Limits, metrics: ServerMetrics,
        upgrade: NIOTypedHTTPServerUpgradeConfiguration<Result>
    ) throws -> EventLoopFuture<Result> {
        var pipeline = NIOUpgradableHTTPServerPipelineConfiguration(upgradeConfiguration: upgrade)
        pipeline.enablePipelining = false
        pipeline.enableErrorHandling = false
        pipeline.enableResponseHeaderValidation = false
        pipeline.decoderConfiguration.maxHeaderFieldCount = limits.headerCountMax
        pipeline.decoderConfiguration.maxHeaderFieldSize = limits.headerFieldSizeBytesMax
        pipeline.decoderConfiguration.maxHeaderListSize = limits.headerListSizeBytesMax
        // The deadline stands in front: it sees bytes as they come, whatever they turn out to be.
        let front = RequestDeadlineHandler(requestTimeout: limits.requestTimeout, idleTimeout: limits.idleTimeout, metrics: metrics)
        let operations = channel.pipeline.syncOperations
        try operations.addHandler(front)
        let result = try operations.configureUpgradableHTTPServerPipeline(configuration: pipeline)
        let decoder = try operations.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try operations.addHandler(RequestHeadHandler(front: front), position: .after(decoder))
        return result
    }

    /// Takes the handlers away that know HTTP, once the connection is a socket. NIO has removed its own.
    static func uninstall(from channel: any NIOCore.Channel) throws {
        let operations = channel.pipeline.syncOperations
        for handler in try [
            operations.handler(type: RequestDeadlineHandler.self) as any RemovableChannelHandler,
            operations.handler(type: RequestHeadHandler.self),
        ] {
            operations.removeHandler(handler, promise: nil)
        }
    }
}
