import NIOCore
import NIOPosix
import Synchronization

/// A TCP proxy on a free loopback port, which carries bytes unchanged unless a test wants others: a network that fails when a test wants it
/// to, and the load balancer in front of several nodes.
///
/// Nothing is buffered beyond one read: while the other side doesn't accept bytes, none are read.
public final class TCPProxy: Sendable {
    public enum Mode: Sendable {
        /// Carries bytes.
        case pass
        /// New connections are closed at once; open ones continue.
        case refuse
        /// Accepts connections and bytes, and carries nothing, for open connections too. When this ends, all connections end: they have lost
        /// bytes.
        case swallow
        /// The same for one direction only: bytes from clients are lost, or bytes to them.
        case swallowSent, swallowReceived

        var losesBytes: Bool { self == .swallow || self == .swallowSent || self == .swallowReceived }
    }

    /// The order in which targets are tried for a new connection. One that refuses is skipped.
    public enum Order: Sendable {
        case inTurn
        case random(seed: UInt64)
    }

    public let port: Int
    private let listener: any Channel
    private let rules: ProxyRules

    /// Listens on a free port in front of these loopback ports.
    ///
    /// - Parameter prefix: Removed from the beginning of requests' paths, such as `/roost`.
    public static func start(
        targets: [Int], order: Order = .inTurn, strippingPrefix prefix: String? = nil
    ) async throws -> TCPProxy {
        let rules = ProxyRules(targets: targets, order: order, prefix: prefix)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1_024)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in channel.eventLoop.makeCompletedFuture { try rules.accept(channel) } }
            .bind(host: "127.0.0.1", port: 0).get()
        return TCPProxy(listener: listener, rules: rules)
    }

    private init(listener: any Channel, rules: ProxyRules) {
        self.listener = listener
        self.rules = rules
        port = listener.localAddress?.port ?? 0
    }

    /// Sets the targets of new connections.
    public func setTargets(_ targets: [Int]) { rules.state.withLock { $0.targets = targets } }

    public func setMode(_ mode: Mode) {
        let before = rules.state.withLock { state in
            defer { state.mode = mode }
            return state.mode
        }
        if before.losesBytes, mode != before { cutAll() }
    }

    /// Ends all connections now.
    public func cutAll() { rules.cutAll() }

    /// Ends all connections after this many more bytes for clients.
    public func cutAll(afterReceiving bytes: Int) { rules.state.withLock { $0.bytesUntilCut = bytes } }

    /// Ends all connections once a client sends a WebSocket message that contains a text; that message isn't carried. A message is examined if
    /// one read contains all of it.
    public func cutAll(insteadOfCarrying text: String) { rules.state.withLock { $0.textBeforeCut = text } }

    /// Replaces a text in what clients receive from now on, wherever one read contains all of it.
    ///
    /// - Parameter other: As many bytes, since the length of a WebSocket frame comes before it.
    public func replace(_ text: String, with other: String) {
        precondition(text.utf8.count == other.utf8.count, "The texts have different lengths.")
        rules.state.withLock { $0.replacement = (Array(text.utf8), Array(other.utf8)) }
    }

    /// The number of clients' open connections.
    public var connectionCount: Int { rules.state.withLock { $0.clientCount } }

    /// Stops listening, and ends all connections.
    public func stop() async {
        try? await listener.close()
        cutAll()
    }
}

/// The open connections, and how to treat them.
private final class ProxyRules: Sendable {
    struct State {
        var targets: [Int]
        var mode = TCPProxy.Mode.pass
        var turn = 0
        var random: SeededGenerator?
        /// Both sides of each connection.
        var channels: [ObjectIdentifier: any Channel] = [:]
        var clientCount = 0
        var bytesUntilCut: Int?
        var textBeforeCut: String?
        var replacement: (text: [UInt8], other: [UInt8])?
    }
    let state: Mutex<State>
    private let prefix: String?

    init(targets: [Int], order: TCPProxy.Order, prefix: String?) {
        var state = State(targets: targets)
        if case .random(let seed) = order { state.random = SeededGenerator(seed: seed) }
        self.state = Mutex(state)
        self.prefix = prefix
    }

    /// A request without the prefix of its path; other bytes unchanged.
    func withoutPrefix(_ bytes: ByteBuffer) -> ByteBuffer {
        guard let prefix else { return bytes }
        let words = String(buffer: bytes).split(separator: " ", maxSplits: 1)
        guard words.count == 2, words[1].hasPrefix("\(prefix)/") else { return bytes }
        return ByteBuffer(string: "\(words[0]) \(words[1].dropFirst(prefix.count))")
    }

    /// Bytes for clients with the text to replace replaced.
    func replaced(_ bytes: ByteBuffer) -> ByteBuffer {
        guard let (text, other) = state.withLock({ $0.replacement }) else { return bytes }
        return ByteBuffer(bytes: Array(bytes.readableBytesView).replacing(text, with: other))
    }

    /// Whether bytes from clients, or for them, are lost at the moment.
    func isSwallowing(fromClient: Bool) -> Bool {
        switch state.withLock({ $0.mode }) {
        case .swallow: true
        case .swallowSent: fromClient
        case .swallowReceived: !fromClient
        case .pass, .refuse: false
        }
    }

    func cutAll() {
        for channel in state.withLock({ Array($0.channels.values) }) { channel.close(promise: nil) }
    }

    /// Counts bytes for clients. Returns whether all connections are to end now.
    func isCutDue(afterReceiving bytes: Int) -> Bool {
        state.withLock { state in
            guard let left = state.bytesUntilCut else { return false }
            state.bytesUntilCut = left > bytes ? left - bytes : nil
            return left <= bytes
        }
    }

    /// Examines a client's bytes. Returns whether all connections are to end now, without carrying them.
    func isCutDue(insteadOfCarrying bytes: ByteBuffer) -> Bool {
        state.withLock { state in
            guard let text = state.textBeforeCut, bytes.webSocketTexts.contains(where: { $0.contains(text) }) else { return false }
            state.textBeforeCut = nil
            return true
        }
    }

    func accept(_ client: any Channel) throws {
        let (mode, targets) = state.withLock { ($0.mode, Self.candidates(&$0)) }
        if mode == .refuse { return client.close(promise: nil) }
        let side = ProxySide(rules: self, isClient: true, isReady: mode == .swallow)
        try client.pipeline.syncOperations.addHandler(side)
        add(client, isClient: true)
        if mode != .swallow { connect(side, of: client, to: targets[...]) }
    }

    private static func candidates(_ state: inout State) -> [Int] {
        guard !state.targets.isEmpty else { return [] }
        if var random = state.random {
            defer { state.random = random }
            return state.targets.shuffled(using: &random)
        }
        let first = state.turn % state.targets.count
        state.turn += 1
        return Array(state.targets[first...] + state.targets[..<first])
    }

    /// On the loop of the client's channel, where both sides stay.
    private func connect(_ side: ProxySide, of client: any Channel, to targets: ArraySlice<Int>) {
        guard let target = targets.first else { return client.close(promise: nil) }
        let bound = NIOLoopBound(side, eventLoop: client.eventLoop)
        ClientBootstrap(group: client.eventLoop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ProxySide(rules: self, isClient: false, isReady: false))
                }
            }
            .connect(host: "127.0.0.1", port: target)
            .whenComplete { result in
                switch result {
                case .failure:
                    self.connect(bound.value, of: client, to: targets.dropFirst())
                case .success(let channel):
                    self.add(channel, isClient: false)
                    guard !bound.value.isGone, let other = try? channel.pipeline.syncOperations.handler(type: ProxySide.self) else {
                        return channel.close(promise: nil)
                    }
                    bound.value.join(other)
                }
            }
    }

    private func add(_ channel: any Channel, isClient: Bool) {
        let id = ObjectIdentifier(channel)
        state.withLock { state in
            state.channels[id] = channel
            if isClient { state.clientCount += 1 }
        }
        channel.closeFuture.whenComplete { _ in
            self.state.withLock { state in
                state.channels[id] = nil
                if isClient { state.clientCount -= 1 }
            }
        }
    }
}

/// One of the two sides of a connection. It reads only while the other side can write, and passes on the end of a side.
private final class ProxySide: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let rules: ProxyRules
    /// Whether it is the side of a client, and not of the target.
    private let isClient: Bool
    private var context: ChannelHandlerContext?
    private var partner: ProxySide?
    /// Whether there is a target, or nothing is to be carried.
    private var isReady: Bool
    private var owesRead = false
    private(set) var isGone = false

    private var isSwallowing: Bool { rules.isSwallowing(fromClient: isClient) }

    init(rules: ProxyRules, isClient: Bool, isReady: Bool) {
        self.rules = rules
        self.isClient = isClient
        self.isReady = isReady
    }

    func join(_ other: ProxySide) {
        partner = other
        other.partner = self
        for side in [self, other] {
            side.isReady = true
            side.resumeReading()
        }
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) {
        isGone = true
        self.context = nil
        partner = nil
    }

    func read(context: ChannelHandlerContext) {
        let mayRead = isReady && (partner?.context?.channel.isWritable ?? true)
        if mayRead { context.read() } else { owesRead = true }
    }

    private func resumeReading() {
        guard owesRead, let context else { return }
        owesRead = false
        read(context: context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isSwallowing, let partner else { return }
        if isClient, rules.isCutDue(insteadOfCarrying: unwrapInboundIn(data)) { return cutAll(context) }
        let bytes = isClient ? rules.withoutPrefix(unwrapInboundIn(data)) : rules.replaced(unwrapInboundIn(data))
        partner.context?.write(partner.wrapOutboundOut(bytes), promise: nil)
        guard !isClient, rules.isCutDue(afterReceiving: bytes.readableBytes) else { return }
        cutAll(context)
    }

    private func cutAll(_ context: ChannelHandlerContext) { context.eventLoop.execute { [rules] in rules.cutAll() } }

    func channelReadComplete(context: ChannelHandlerContext) {
        partner?.context?.flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { partner?.resumeReading() }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        if !isSwallowing { partner?.context?.close(mode: .output, promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !isSwallowing { partner?.context?.close(promise: nil) }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

extension ByteBuffer {
    /// The complete messages in a WebSocket client's bytes; of up to 65,535 bytes each.
    fileprivate var webSocketTexts: [String] {
        var rest = self
        var texts: [String] = []
        while rest.readInteger(as: UInt8.self) != nil, let head = rest.readInteger(as: UInt8.self) {
            var length = Int(head & 0x7F)
            if length == 126, let long = rest.readInteger(as: UInt16.self) { length = Int(long) }
            guard let mask = rest.readBytes(length: 4), let data = rest.readBytes(length: length) else { break }
            texts.append(String(decoding: data.enumerated().map { $1 ^ mask[$0 % 4] }, as: UTF8.self))
        }
        return texts
    }
}
