import Foundation
import NIOCore

/// Writes to a connection, past its channel if that holds nothing which comes before.
///
/// The way through the channel is a cost of its own beside write(2), for each delivery to an idle socket. It is what a channel is for if the client reads
/// slower than the server writes: then what is left is the channel's, and so is what follows until the channel has written everything.
struct SocketWriter {
    /// What gives the connection's socket, once it was asked for; nil where the channel has none.
    ///
    /// NIO's own way to it, `withUnsafeTransportIfAvailable`, asks the runtime with each call whether the channel has a socket, which takes over a quarter as long as
    /// write(2). It is asked once here. The channel still decides at each write whether its socket is open.
    private var transport: (any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>)?
    private var hasAskedForTransport = false
    /// At the beginning the channel may hold the answer to the handshake.
    private var channelMayHoldBytes = true
    /// Calls of the kernel since they were last taken.
    private var callCount: Int64 = 0

    /// Writes as much as the connection takes at once.
    ///
    /// - Returns: What is left for the channel.
    mutating func write(_ bytes: UnflushedBytes, to context: ChannelHandlerContext) -> [ByteBuffer] {
        if channelMayHoldBytes {
            guard (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0 else { return bytes.pieces }
            channelMayHoldBytes = false
        }
        // A failure is the channel's to find and to report.
        if !hasAskedForTransport { askForTransport(of: context.channel) }
        let done = try? transport?.withUnsafeTransport { Self.send(bytes, to: $0) }
        callCount += done?.calls ?? 0
        let rest = bytes.pieces(after: max(0, done?.sent ?? 0))
        channelMayHoldBytes = !rest.isEmpty
        return rest
    }

    /// Takes how many calls of the kernel there were since they were last taken. What the channel writes isn't among them.
    mutating func takeCallCount() -> Int64 {
        defer { callCount = 0 }
        return callCount
    }

    private mutating func askForTransport(of channel: any Channel) {
        hasAskedForTransport = true
        transport = channel._channelCore as? any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>
    }

    #if os(Linux)
    private static let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
    #else
    private static let flags = MSG_DONTWAIT
    #endif
    /// The most pieces of one call. Kernels take a thousand, of which the addresses would take 16 KB of the stack.
    private static let piecesMax = 64

    /// - Returns: How many bytes the connection has taken, in how many calls.
    private static func send(_ bytes: UnflushedBytes, to handle: NIOBSDSocket.Handle) -> (sent: Int, calls: Int64) {
        if case .one(let piece) = bytes {
            let sent = piece.withUnsafeReadableBytes { Foundation.send(handle, $0.baseAddress, $0.count, flags) }
            return (sent, sent > 0 ? 1 : 0)
        }
        var (sent, calls, pieces) = (0, Int64(0), bytes.pieces[...])
        while !pieces.isEmpty {
            let some = pieces.prefix(piecesMax)
            let count = send(some, to: handle)
            calls += count > 0 ? 1 : 0
            sent += max(0, count)
            guard count == some.reduce(0, { $0 + $1.readableBytes }) else { break }
            pieces = pieces.dropFirst(piecesMax)
        }
        return (sent, calls)
    }

    private static func send(_ pieces: ArraySlice<ByteBuffer>, to handle: NIOBSDSocket.Handle) -> Int {
        withUnsafeTemporaryAllocation(of: iovec.self, capacity: pieces.count) { vectors in
            for (index, piece) in pieces.enumerated() {
                // The bytes stay where they are as long as the pieces are held: until the call has returned.
                let bytes = piece.withUnsafeReadableBytesWithStorageManagement { bytes, _ in bytes }
                let address = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                vectors.initializeElement(at: index, to: iovec(iov_base: address, iov_len: bytes.count))
            }
            var message = msghdr()
            message.msg_iov = vectors.baseAddress
            message.msg_iovlen = numericCast(pieces.count)
            return withExtendedLifetime(pieces) { sendmsg(handle, &message, flags) }
        }
    }
}
