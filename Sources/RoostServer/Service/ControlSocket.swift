package import Foundation
import Logging
import NIOCore
import NIOPosix
import RoostDatabase

/// The command line's connection to a running server: a socket in its data directory, which only users with access to that directory can reach.
///
/// The request is one line of JSON, and so is the answer.
package enum ControlSocket {
    /// A request for a backup.
    package struct Request: Codable, Sendable {
        /// The directory that a backup is made in.
        package var backup: String
        /// Whether the backup includes the token secret.
        package var withSecret: Bool
        package init(backup: String, withSecret: Bool) { (self.backup, self.withSecret) = (backup, withSecret) }
    }

    /// One of the two is given.
    package struct Answer: Codable, Sendable {
        /// The backup that was made.
        package var backup: Backup?
        /// Why none was made.
        package var error: String?
    }

    static let name = "roost.control"
    static let requestSizeBytesMax = 16_384

    static func path(in directory: URL) -> String { directory.appending(path: name).path }

    /// The most bytes of a path in a socket address, including the terminating zero.
    private static let pathSizeBytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path)

    /// Passes the socket's path to the body. A path too long for a socket address is replaced by one through the directory's file descriptor.
    private static func withAddress<Result>(in directory: URL, _ body: (String) async throws -> Result) async throws -> Result {
        let path = path(in: directory)
        #if os(Linux)
        guard path.utf8.count >= pathSizeBytesMax else { return try await body(path) }
        let descriptor = open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Backup.Unusable("\(directory.path) can't be opened: \(String(cString: strerror(errno))).")
        }
        defer { close(descriptor) }
        return try await body("/proc/self/fd/\(descriptor)/\(name)")
        #else
        return try await body(path)
        #endif
    }

    /// A server accepted a request and ended before it had answered.
    package struct Unanswered: Error {}

    /// Listens until the channel is closed.
    static func listen(
        in directory: URL, group: any EventLoopGroup, _ handle: @escaping @Sendable (Request) async -> Answer
    ) async throws -> any Channel {
        let path = path(in: directory)
        unlink(path)
        let channel = try await withAddress(in: directory) { address in
            try await ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Handler(handle)) }
                }
                .bind(unixDomainSocketPath: address).get()
        }
        chmod(path, 0o600)
        return channel
    }

    /// Runs work that may take long in a thread of its own: neither on an event loop nor on a thread of the concurrency runtime.
    static func inThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                ThreadName.set("roost-control")
                continuation.resume(with: Result(catching: work))
            }
        }
    }

    /// Sends a request to the server that runs on a data directory.
    ///
    /// - Throws: ``Unanswered`` if the server accepted the request and ended without an answer; another error if no server could be reached.
    package static func ask(_ request: Request, in directory: URL) async throws -> Answer {
        let channel = try await withAddress(in: directory) { address in
            try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .connect(unixDomainSocketPath: address) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
        }
        let line = try JSONEncoder().encode(request) + Data("\n".utf8)
        var answer = ByteBuffer()
        do {
            try await channel.executeThenClose { inbound, outbound in
                try await outbound.write(ByteBuffer(bytes: line))
                for try await piece in inbound { answer.writeImmutableBuffer(piece) }
            }
            return try JSONDecoder().decode(Answer.self, from: Data(answer.readableBytesView))
        } catch {
            // A killed server resets the connection, and one of another version may answer in another format.
            throw Unanswered()
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let handle: @Sendable (Request) async -> Answer
        private var received = ByteBuffer()
        private var isAsked = false

        init(_ handle: @escaping @Sendable (Request) async -> Answer) { self.handle = handle }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !isAsked else { return }
            received.writeImmutableBuffer(unwrapInboundIn(data))
            guard received.readableBytes <= ControlSocket.requestSizeBytesMax else { return context.close(promise: nil) }
            guard received.readableBytesView.last == UInt8(ascii: "\n") else { return }
            isAsked = true
            guard let request = try? JSONDecoder().decode(Request.self, from: Data(received.readableBytesView)) else {
                return context.close(promise: nil)
            }
            let (handle, channel) = (handle, context.channel)
            context.eventLoop.makeFutureWithTask { await handle(request) }.whenSuccess { answer in
                let bytes = (try? JSONEncoder().encode(answer)) ?? Data()
                channel.writeAndFlush(ByteBuffer(bytes: bytes)).whenComplete { _ in channel.close(promise: nil) }
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
