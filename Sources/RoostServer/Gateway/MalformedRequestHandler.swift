import NIOCore
import NIOHTTP1
import RoostAPI

/// Answers what isn't HTTP, or goes past the limits on headers, with the same kind of document as every other refusal; then closes.
final class MalformedRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private var isClosing = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if !isClosing { context.fireChannelRead(data) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, !isClosing else {
            context.fireErrorCaught(error)
            return
        }
        isClosing = true
        let problem = Problem(RoostError(.invalidArgument, "This is not an HTTP request, or its headers are too large."))
        let body = context.channel.allocator.buffer(bytes: problem.json)
        let headers: HTTPHeaders = [
            "content-type": Problem.mediaType, "content-length": "\(body.readableBytes)", "connection": "close",
        ]
        context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: .badRequest, headers: headers))), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }
}
