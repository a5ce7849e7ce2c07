import NIOCore
import NIOHTTP1
import RoostAPI

/// Closes an HTTP connection on which a request takes too long to arrive, or none arrives: a client that sends a byte now and then must not
/// hold a connection for ever. The time between requests begins once the client has read its answer, however slowly it does.
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
    /// Whether what is written tells the client to go on with its request, which gets no more time for that.
    var isInterim = false
    /// Whether a request that has arrived whole is worked on, and no bytes have been written since it is.
    private var isWorking = false
    /// What the client has read of its answers, since the last of them was written.
    private var unread: UnreadOutput?
    private var context: ChannelHandlerContext?

    /// How long a client that has its last answer may keep sending.
    private static let lingering = TimeAmount.seconds(2)
    /// How often it is looked whether a client goes on reading, in the time that is given to one that doesn't.
    private static let looks = 4

    /// - Parameter waitingBytes: Looks at what a connection's client hasn't read yet.
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

    /// The connection has ended, or is a socket from now on.
    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        metrics.connectionLeftHTTP()
        deadline?.cancel()
    }

    /// A request has arrived whole. How long it is worked on has limits of its own, of which `--lock-timeout` may be longer than that of arriving.
    /// A client that leaves the answer before it unread gets no more time for that.
    func requestArrived() {
        isWorking = true
        deadline?.cancel()
        deadline = nil
        if let context, let unread, holdsAnswers(context) { wait(context, unread) }
    }

    /// An answer has been written to its end.
    ///
    /// - Parameter isWorking: Whether another request has arrived whole behind the answered one: it is worked on now.
    func answered(isWorking: Bool) { self.isWorking = isWorking }

    /// Whether an answer waits to be written until the client reads.
    private func holdsAnswers(_ context: ChannelHandlerContext) -> Bool {
        waitingBytes(context.channel).map { $0.channelBytes > 0 } ?? false
    }

    /// Discards whatever still arrives: the connection's last request has been read. It still has to be read, or the client would be reset
    /// before it has its answer.
    func discardRest() { isDiscarding = true }

    /// Gives the client a moment to close after the last answer, then closes the connection.
    func linger() {
        if let context { close(context, after: Self.lingering) }
    }

    /// Completes once everything that has been written so far is with the kernel, or can't get there any more.
    func flushed() -> EventLoopFuture<Void>? { context?.writeAndFlush(wrapOutboundOut(ByteBuffer())) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isDiscarding { return }
        // The first bytes after an answer begin a request; the bytes that follow don't give it more time.
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
        wait(context, UnreadOutput(at: context.eventLoop.now))
        context.write(data, promise: promise)
    }

    /// Closes the connection once its client has neither read of its answer nor begun another request for the time between requests.
    private func wait(_ context: ChannelHandlerContext, _ unread: UnreadOutput) {
        deadline?.cancel()
        self.unread = unread
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let time = TimeAmount.nanoseconds(idleTimeout.nanoseconds / Int64(Self.looks))
        deadline = context.eventLoop.scheduleTask(in: time) { handler.value.look(unread) }
    }

    private func look(_ unread: UnreadOutput) {
        guard let context else { return }
        if isWorking, !holdsAnswers(context) {
            deadline = nil
            return
        }
        var unread = unread
        let now = context.eventLoop.now
        if let waiting = waitingBytes(context.channel) { unread.note(waiting, at: now) }
        if now - unread.readAt >= idleTimeout { context.close(promise: nil) } else { wait(context, unread) }
    }

    private func close(_ context: ChannelHandlerContext, after time: TimeAmount) {
        deadline?.cancel()
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }
}
