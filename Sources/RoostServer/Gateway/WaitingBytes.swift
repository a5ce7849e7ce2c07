import Foundation
import NIOCore

/// What a connection's client hasn't taken yet of the bytes that it was sent.
struct WaitingBytes: Equatable, Sendable {
    /// Those that the connection's channel holds.
    var channelBytes: Int
    /// Those that the kernel holds, until the other end says that it has them.
    var kernelBytes = 0
}

extension WaitingBytes {
    /// Looks at a connection, on its event loop. Nil where it has ended.
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
