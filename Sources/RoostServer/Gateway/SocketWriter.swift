import Foundation
import NIOCore

/// Writes to a connection, past its channel if that holds nothing which comes before.
///
/// The way through the channel is a cost of its own beside write(2), for each delivery to an idle socket. It is what a channel is for if the client reads
/// slower than the server writes: then what is left is the channel's, and so is what follows until the channel has written everything.
struct SocketWriter {
    /// What gives the connection's socket, once it was asked for; nil in it where the channel has none.
    ///
    /// NIO's own way to it, `withUnsafeTransportIfAvailable`, asks the runtime with each call whether the channel has a socket, which takes over a quarter as long as
    /// write(2). It is asked once here. The channel still decides at each write whether its socket is open.
    private var transport: (any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>)??
    /// At the beginning the channel may hold the answer to the handshake.
    private var channelMayHoldBytes = true

    /// Writes as much as the connection takes at once.
    ///
    /// - Returns: What is left for the channel; nil if nothing is.
    mutating func write(_ bytes: ByteBuffer, to context: ChannelHandlerContext) -> ByteBuffer? {
        if channelMayHoldBytes {
            guard (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0 else { return bytes }
            channelMayHoldBytes = false
        }
        // A failure is the channel's to find and to report.
        let sent = try? transport(of: context.channel)?.withUnsafeTransport { Self.send(bytes, to: $0) }
        let count = sent ?? -1
        guard count < bytes.readableBytes else { return nil }
        channelMayHoldBytes = true
        var rest = bytes
        rest.moveReaderIndex(forwardBy: max(0, count))
        return rest
    }

    private mutating func transport(
        of channel: any Channel
    ) -> (any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>)? {
        if let transport { return transport }
        let found = channel._channelCore as? any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>
        transport = .some(found)
        return found
    }

    /// Notes that bytes go through the channel.
    mutating func handsToChannel() { channelMayHoldBytes = true }

    private static func send(_ bytes: ByteBuffer, to handle: NIOBSDSocket.Handle) -> Int {
        #if os(Linux)
        let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
        #else
        let flags = MSG_DONTWAIT
        #endif
        return bytes.withUnsafeReadableBytes { Foundation.send(handle, $0.baseAddress, $0.count, flags) }
    }
}
