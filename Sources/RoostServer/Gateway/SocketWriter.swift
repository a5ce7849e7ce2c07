import Foundation
import NIOCore

/// Writes to a connection, bypassing its channel if that has no earlier bytes queued.
///
/// Going through the channel adds to the cost of write(2) for each delivery to an idle socket. The channel is needed only if the client reads
/// more slowly than the server writes: it then gets the remainder, and everything that follows until it has written all of it.
struct SocketWriter {
    /// Gives access to the connection's socket, once looked up; nil if the channel has none.
    ///
    /// NIO's `withUnsafeTransportIfAvailable` asks the runtime on each call whether the channel has a socket, which takes over a quarter as
    /// long as write(2). Here it is asked once. The channel still decides at each write whether its socket is open.
    private var transport: (any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>)?
    private var hasAskedForTransport = false
    /// At first the channel may hold the answer to the handshake.
    private var channelMayHoldBytes = true
    /// System calls since the count was last taken.
    private var callCount: Int64 = 0

    /// Writes as much as the connection accepts immediately.
    ///
    /// - Returns: The remainder, for the channel.
    mutating func write(_ bytes: UnflushedBytes, to context: ChannelHandlerContext) -> [ByteBuffer] {
        if channelMayHoldBytes {
            guard (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0 else { return bytes.pieces }
            channelMayHoldBytes = false
        }
        // Failures are left to the channel to detect and report.
        if !hasAskedForTransport { askForTransport(of: context.channel) }
        let done = try? transport?.withUnsafeTransport { Self.send(bytes, to: $0) }
        callCount += done?.calls ?? 0
        let rest = bytes.pieces(after: max(0, done?.sent ?? 0))
        channelMayHoldBytes = !rest.isEmpty
        return rest
    }

    /// Takes the number of system calls since the last time. The channel's own writes aren't counted.
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
    /// The most pieces per call. Kernels accept a thousand, but their addresses would take 16 KB of stack.
    private static let piecesMax = 64

    /// - Returns: How many bytes the connection has accepted, in how many calls.
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
                // The bytes don't move while the pieces are held, which is until the call has returned.
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
