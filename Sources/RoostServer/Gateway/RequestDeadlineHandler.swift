import NIOCore
import NIOHTTP1
import RoostAPI

/// Closes an HTTP connection on which a request takes too long to arrive, or none arrives: a client that sends a byte now and then must not
/// hold a connection forever. The time between requests begins once the client has read its answer, however slowly.
final class RequestDeadlineHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let requestTimeout: TimeAmount
    private let idleTimeout: TimeAmount
    private let metrics: ServerMetrics
    private let waitingBytes: (any NIOCore.Channel) -> WaitingBytes?
    private var deadline: Scheduled<Void>?
    private var isReceiving = false
    private var isDiscarding = false
    /// Whether the current write only tells the client to continue with its request, and so doesn't extend the deadline.
    var isInterim = false
    /// Whether a completely received request is being worked on, and no bytes have been written since.
    private var isWorking = false
    /// The client's progress in reading its answers since the last write.
    private var slowReader: SlowReader?
    private var context: ChannelHandlerContext?

    /// How long a client that has its last answer may keep sending.
    private static let lingering = TimeAmount.seconds(2)
    /// How many times per idle timeout it is checked whether a client is still reading.
    private static let looks = 4

    /// - Parameter waitingBytes: Returns what a connection's client hasn't read yet.
    init(
        requestTimeout: TimeAmount, idleTimeout: TimeAmount, metrics: ServerMetrics,
        waitingBytes: @escaping (any NIOCore.Channel) -> WaitingBytes? = { WaitingBytes(of: $0) }
    ) {
        self.metrics = metrics
        self.waitingBytes = waitingBytes
        self.requestTimeout = requestTimeout
        self.idleTimeout = idleTimeout
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        metrics.connectionOpened()
        close(context, after: requestTimeout)
    }

    /// The connection has ended or become a socket.
    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        metrics.connectionLeftHTTP()
        deadline?.cancel()
    }

    /// Notes that a request has arrived completely. Working on it has separate limits, and `--lock-timeout` may be longer than the time to
    /// arrive. A client that leaves the previous answer unread gets no more time for that.
    func requestArrived() {
        isWorking = true
        deadline?.cancel()
        deadline = nil
        if let context, let slowReader, holdsAnswers(context) { wait(context, slowReader) }
    }

    /// Notes that an answer has been written completely.
    ///
    /// - Parameter isWorking: Whether another request has arrived completely after the answered one and is now worked on.
    func answered(isWorking: Bool) { self.isWorking = isWorking }

    /// Whether part of an answer is queued until the client reads.
    private func holdsAnswers(_ context: ChannelHandlerContext) -> Bool {
        waitingBytes(context.channel).map { $0.channelBytes > 0 } ?? false
    }

    /// Discards what still arrives after the connection's last request. It still has to be read, or the client would be reset before it has its answer.
    func discardRest() { isDiscarding = true }

    /// Gives the client a moment to close after the last answer, then closes the connection.
    func linger() {
        if let context { close(context, after: Self.lingering) }
    }

    /// Completes once everything written so far has reached the kernel, or no longer can.
    func flushed() -> EventLoopFuture<Void>? { context?.writeAndFlush(wrapOutboundOut(ByteBuffer())) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isDiscarding { return }
        // The first bytes after an answer begin a request; later bytes don't give it more time.
        if !isReceiving {
            isReceiving = true
            close(context, after: requestTimeout)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if isInterim { return context.write(data, promise: promise) }
        isReceiving = false
        isWorking = false
        wait(context, SlowReader(at: context.eventLoop.now))
        context.write(data, promise: promise)
    }

    /// Closes the connection once its client has neither read more of its answer nor begun another request for the idle timeout.
    private func wait(_ context: ChannelHandlerContext, _ slowReader: SlowReader) {
        deadline?.cancel()
        self.slowReader = slowReader
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let time = TimeAmount.nanoseconds(idleTimeout.nanoseconds / Int64(Self.looks))
        deadline = context.eventLoop.scheduleTask(in: time) { handler.value.look(slowReader) }
    }

    private func look(_ slowReader: SlowReader) {
        guard let context else { return }
        if isWorking, !holdsAnswers(context) {
            deadline = nil
            return
        }
        var slowReader = slowReader
        let now = context.eventLoop.now
        if let waiting = waitingBytes(context.channel) { slowReader.note(waiting, at: now) }
        if now - slowReader.readAt >= idleTimeout { context.close(promise: nil) } else { wait(context, slowReader) }
    }

    private func close(_ context: ChannelHandlerContext, after time: TimeAmount) {
        deadline?.cancel()
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }
}
