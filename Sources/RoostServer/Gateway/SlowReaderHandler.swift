import NIOCore
import RoostAPI

/// Counts the bytes of HTTP answers that a client hasn't read, from when they are handed to the connection until the kernel has taken them.
///
/// While at least half of the server's memory budget is used, it closes the connection of a client that leaves an answer unread: one that is counted, or so
/// much of others that nothing more is written. It does the same while there are too many pages of the metrics (``UnreadPages``) for a client that leaves one
/// of them unread, or anything before it.
final class SlowReaderHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Smaller writes aren't counted: the buffers of a connection take 16 KiB of them, and then its next answer waits.
    static let countedBytesMin = 4 << 10
    private static let interval = TimeAmount.seconds(1)

    private let ticket: ConnectionTicket
    private let readStallTimeout: TimeAmount
    private var unreadBytes = 0
    private var unreadSince: NIODeadline?
    private var unreadPage: UnreadPages.Page?
    /// Since when nothing more is written, because the client leaves so much unread, in answers of any size. A page may be waiting.
    private var unwritableSince: NIODeadline?
    private var isWatching = false

    /// - Parameter readStallTimeout: How long an answer may be left unread under pressure.
    init(ticket: ConnectionTicket, readStallTimeout: TimeAmount) {
        self.ticket = ticket
        self.readStallTimeout = readStallTimeout
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let sizeBytes = unwrapOutboundIn(data).readableBytes
        guard sizeBytes >= Self.countedBytesMin, let held = ticket.hold(sizeBytes) else {
            return context.write(data, promise: promise)
        }
        let written = promise ?? context.eventLoop.makePromise()
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        unreadBytes += sizeBytes
        if unreadSince == nil { unreadSince = .now() }
        if case .page(let page) = held { unreadPage = page }
        written.futureResult.whenComplete { _ in
            handler.value.unreadBytes -= sizeBytes
            if handler.value.unreadBytes == 0 { (handler.value.unreadSince, handler.value.unreadPage) = (nil, nil) }
            withExtendedLifetime(held) {}
        }
        watch(context)
        context.write(data, promise: written)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            unwritableSince = nil
        } else if unwritableSince == nil {
            unwritableSince = .now()
            watch(context)
        }
        context.fireChannelWritabilityChanged()
    }

    /// Checks again once a second while something is unread.
    private func watch(_ context: ChannelHandlerContext) {
        guard !isWatching else { return }
        isWatching = true
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let channel = context.channel
        context.eventLoop.scheduleTask(in: Self.interval) { handler.value.look(at: channel, handler) }
    }

    private func look(at channel: any NIOCore.Channel, _ handler: NIOLoopBound<SlowReaderHandler>) {
        guard channel.isActive, unreadSince != nil || unwritableSince != nil else { return isWatching = false }
        // Small answers and shared documents have no count of their own, but take memory, and others may wait behind them.
        let isHalfFull = ticket.connections.memory.isHalfFull
        let mustRead = isHalfFull || unreadPage?.isOneOfTooMany == true
        let mustBecomeWritable = isHalfFull || ticket.waitingPage?.isOneOfTooMany == true
        if mustRead && hasStalled(since: unreadSince) || mustBecomeWritable && hasStalled(since: unwritableSince) {
            isWatching = false
            channel.close(promise: nil)
            return
        }
        channel.eventLoop.scheduleTask(in: Self.interval) { handler.value.look(at: channel, handler) }
    }

    private func hasStalled(since time: NIODeadline?) -> Bool { time.map { NIODeadline.now() - $0 >= readStallTimeout } ?? false }
}
