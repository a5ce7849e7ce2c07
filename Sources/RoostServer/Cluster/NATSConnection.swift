#if Cluster
import CNATS
import Logging

/// One bus's connection to NATS: the calls of the library. Used only by the bus's thread, which may wait in them.
struct NATSConnection: ~Copyable {
    /// The library's limits, and how it detects that a server is gone.
    enum Tuning {
        /// A server that doesn't answer is given up after at most three of these.
        static let pingMilliseconds: Int64 = 1_500
        static let pingsWithoutAnswerMax: Int32 = 2
        /// How long a server that reads nothing blocks the bus's thread, and only that.
        static let writeMilliseconds: Int64 = 2_000
        static let connectMilliseconds: Int64 = 2_000
        static let flushMilliseconds: Int64 = 2_000
        /// The delay between attempts, and the maximum random jitter, so a cluster's nodes don't all reconnect at once.
        static let reconnectMilliseconds: Int64 = 400
        static let reconnectJitterMilliseconds: Int64 = 600
        /// Room for messages published before the library reports that the connection is gone.
        static let reconnectBufferBytes: Int32 = 64 * 1_024
        /// The most messages queued for the handler, per subscription. The library drops further ones, which the receiver notices by the seq.
        static let pendingMessages: Int32 = 8_192
        static let pendingBytes: Int32 = 16 * 1_024 * 1_024
    }

    private let connection: OpaquePointer
    /// The number by which the library's callbacks find the bus.
    private let number: UInt
    private let bus: NATSBus
    private var subscriptions: [BusTopic: Subscribed] = [:]

    private struct Subscribed {
        let subscription: NATSSubscription
        let pointer: OpaquePointer
        let number: UInt
    }

    /// Connects, or keeps trying if no server can be reached yet. Throws if a server refuses.
    init(_ address: NATSAddress, for bus: NATSBus) throws(BusFailure) {
        let number = NATSCallbacks.remember(.connection(bus))
        do throws(BusFailure) {
            connection = try Self.connect(address, closure: NATSCallbacks.pointer(number))
        } catch {
            NATSCallbacks.forget(number)
            throw error
        }
        self.number = number
        self.bus = bus
    }

    var isConnected: Bool { natsConnection_Status(connection) == NATS_CONN_STATUS_CONNECTED }

    /// The library gives up for good if a server refuses twice: after a change of passwords, for example.
    var isClosed: Bool { natsConnection_IsClosed(connection) }

    /// Why it isn't connected, in the library's or the server's words: they name no user and no password.
    var lastError: String {
        var text: UnsafePointer<CChar>?
        natsConnection_GetLastError(connection, &text)
        return text.map { String(cString: $0) } ?? ""
    }

    /// The most bytes that the server takes in one message; 0 until it has said so.
    var payloadBytesMax: Int64 { natsConnection_GetMaxPayload(connection) }

    func publish(_ payload: [UInt8], to subject: String) -> natsStatus {
        payload.withUnsafeBytes { natsConnection_Publish(connection, subject, $0.baseAddress, Int32($0.count)) }
    }

    /// Brings one topic to the wanted state: subscribed by this subscription, or not at all.
    mutating func set(_ topic: BusTopic, to wanted: NATSSubscription?, subject: String) -> natsStatus {
        let present = subscriptions[topic]
        if present?.subscription === wanted { return NATS_OK }
        if let present {
            subscriptions[topic] = nil
            end(present)
        }
        guard let wanted else { return NATS_OK }
        let number = NATSCallbacks.remember(.subscription(bus, wanted))
        var pointer: OpaquePointer?
        let closure = NATSCallbacks.pointer(number)
        let status = natsConnection_Subscribe(&pointer, connection, subject, NATSCallbacks.message, closure)
        guard status == NATS_OK, let pointer else {
            NATSCallbacks.forget(number)
            return status
        }
        subscriptions[topic] = Subscribed(subscription: wanted, pointer: pointer, number: number)
        return natsSubscription_SetPendingLimits(pointer, Tuning.pendingMessages, Tuning.pendingBytes)
    }

    private func end(_ subscribed: Subscribed) {
        NATSCallbacks.forget(subscribed.number)
        natsSubscription_Unsubscribe(subscribed.pointer)
        natsSubscription_Destroy(subscribed.pointer)
    }

    /// Waits for a round trip: the server has then read everything sent before.
    func flush() -> natsStatus {
        guard isConnected else { return NATS_CONNECTION_DISCONNECTED }
        return natsConnection_FlushTimeout(connection, Tuning.flushMilliseconds)
    }

    deinit {
        // Removed first, so the library's last callbacks do nothing.
        NATSCallbacks.forget(number)
        for subscribed in subscriptions.values { NATSCallbacks.forget(subscribed.number) }
        natsConnection_Close(connection)
        for subscribed in subscriptions.values { natsSubscription_Destroy(subscribed.pointer) }
        natsConnection_Destroy(connection)
    }

    private static func connect(_ address: NATSAddress, closure: UnsafeMutableRawPointer?) throws(BusFailure) -> OpaquePointer {
        var options: OpaquePointer?
        try check(natsOptions_Create(&options))
        // The connection keeps a copy.
        defer { natsOptions_Destroy(options) }
        // One thread for all subscriptions of the process: a node has 100,000 of them, and the order of each is kept.
        try check(nats_SetMessageDeliveryPoolSize(1))
        try check(natsOptions_UseGlobalMessageDelivery(options, true))
        try check(natsOptions_SetName(options, "roost"))
        try check(natsOptions_SetNoEcho(options, true))
        // Written to the socket by the bus's own thread: the library's flusher waits a millisecond for more.
        try check(natsOptions_SetSendAsap(options, true))
        try check(setServers(address, of: options))
        try check(natsOptions_SetTimeout(options, Tuning.connectMilliseconds))
        try check(natsOptions_SetWriteDeadline(options, Tuning.writeMilliseconds))
        try check(natsOptions_SetPingInterval(options, Tuning.pingMilliseconds))
        try check(natsOptions_SetMaxPingsOut(options, Tuning.pingsWithoutAnswerMax))
        try check(natsOptions_SetMaxReconnect(options, -1))
        try check(natsOptions_SetReconnectWait(options, Tuning.reconnectMilliseconds))
        let jitter = Tuning.reconnectJitterMilliseconds
        try check(natsOptions_SetReconnectJitter(options, jitter, jitter))
        try check(natsOptions_SetReconnectBufSize(options, Tuning.reconnectBufferBytes))
        try check(natsOptions_SetMaxPendingMsgs(options, Tuning.pendingMessages))
        try check(natsOptions_SetDisconnectedCB(options, NATSCallbacks.disconnected, closure))
        try check(natsOptions_SetReconnectedCB(options, NATSCallbacks.reconnected, closure))
        try check(natsOptions_SetClosedCB(options, NATSCallbacks.closed, closure))
        try check(natsOptions_SetErrorHandler(options, NATSCallbacks.error, closure))

        // The first attempt finds out whether a server refuses, which the library doesn't report while it may retry; the second one
        // retries.
        var connection: OpaquePointer?
        var status = natsConnection_Connect(&connection, options)
        // A container's or load balancer's port accepts connections before the server does, and closes them.
        if status == NATS_NO_SERVER || status == NATS_TIMEOUT || status == NATS_IO_ERROR || status == NATS_CONNECTION_CLOSED {
            try check(natsOptions_SetRetryOnFailedConnect(options, true, NATSCallbacks.reconnected, closure))
            status = natsConnection_Connect(&connection, options)
        }
        guard status == NATS_OK || status == NATS_NOT_YET_CONNECTED, let connection else {
            throw BusFailure(message: "NATS at \(address.servers.joined(separator: ", ")): \(status.text)")
        }
        return connection
    }

    private static func setServers(_ address: NATSAddress, of options: OpaquePointer?) -> natsStatus {
        if address.isSecure {
            // The library checks that the certificate is trusted, and that it is for the host of the address.
            var status = natsOptions_SetSecure(options, true)
            // A server names others of its cluster before it has shown a certificate. The library would connect to them, and check their
            // certificates against the names given there: an attacker in between could name their own server and get the password.
            if status == NATS_OK { status = natsOptions_SetIgnoreDiscoveredServers(options, true) }
            guard status == NATS_OK else { return status }
        }
        let status =
            switch address.credentials {
            case .user(let user, let password): natsOptions_SetUserInfo(options, user, password)
            case .token(let token): natsOptions_SetToken(options, token)
            case nil: NATS_OK
            }
        guard status == NATS_OK else { return status }
        // The library parses the comma-separated list itself, and tries its servers in random order.
        return natsOptions_SetURL(options, address.urls.joined(separator: ","))
    }

    private static func check(_ status: natsStatus) throws(BusFailure) {
        guard status != NATS_OK else { return }
        throw BusFailure(message: "NATS library: \(status.text)")
    }
}

extension natsStatus {
    /// The library's words, which name no address and no user.
    var text: String { natsStatus_GetText(self).map { String(cString: $0) } ?? "status \(rawValue)" }
}
#endif
