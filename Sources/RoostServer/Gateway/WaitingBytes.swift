import Foundation
import NIOCore

/// The bytes sent to a connection's client that it hasn't taken yet.
struct WaitingBytes: Equatable, Sendable {
    /// Bytes queued in the connection's channel.
    var channelBytes: Int
    /// Bytes in the kernel that the other end hasn't acknowledged.
    var kernelBytes = 0
}

extension WaitingBytes {
    /// Inspects a connection, on its event loop. Nil if it has ended.
    init?(of channel: any Channel) {
        guard let options = channel.syncOptions, let channelBytes = try? options.getOption(.bufferedWritableBytes) else {
            return nil
        }
        self.channelBytes = channelBytes
        kernelBytes = (try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable { Self.kernelBytes($0) } ?? 0) ?? 0
    }

    private static func kernelBytes(_ handle: NIOBSDSocket.Handle) -> Int {
        var count: Int32 = 0
        #if os(Linux)
        return ioctl(handle, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
        #else
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(handle, SOL_SOCKET, SO_NWRITE, &count, &size) == 0 ? Int(count) : 0
        #endif
    }
}
