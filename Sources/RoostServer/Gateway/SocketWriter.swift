import Foundation
import NIOCore

/// Writes to a connection, past its channel if that holds nothing which comes before.
///
/// The way through the channel is a cost of its own beside write(2), for each delivery to an idle socket. It is what a channel is for if the client reads
/// slower than the server writes: then what is left is the channel's, and so is what follows until the channel has written everything.
struct SocketWriter {
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
        let sent = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable { Self.send(bytes, to: $0) }
        let count = sent ?? -1
        guard count < bytes.readableBytes else { return nil }
        channelMayHoldBytes = true
        var rest = bytes
        rest.moveReaderIndex(forwardBy: max(0, count))
        return rest
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
