import Foundation
package import NIOCore
import NIOHTTP1
import NIOWebSocket
package import RoostAPI
package import RoostCore

/// Separate entry points to the code that reads bytes from outside, for fuzzing.
package enum UntrustedBytes {
    private static let metrics = ServerMetrics()

    /// Reads JSON as a request's body is read; nil if it is refused.
    package static func json(_ bytes: [UInt8]) -> JSONValue? {
        guard String(validating: bytes, as: UTF8.self) != nil, let scan = try? JSONScan(bytes), scan.problem == nil else {
            return nil
        }
        return try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    /// Returns whether a text is strictly JSON and cheap enough to decode.
    package static func isJSON(_ bytes: [UInt8]) -> Bool { (try? JSONScan(bytes)) != nil }

    /// The result of a socket's message.
    package enum Message {
        case authenticate
        case call(any Handled, key: IdempotencyKey?)
        case refused(RoostError)
    }

    package static func message(_ bytes: [UInt8]) -> Message {
        switch ClientMessage(ByteBuffer(bytes: bytes)) {
        case .authenticate: .authenticate
        case .call(_, let operation, let key): .call(operation, key: key)
        case .unreadableCredentials(let error), .refused(_, let error), .malformed(let error): .refused(error)
        }
    }

    /// The operations that read their own fields.
    package static let plainOperations = OperationTable.handled.filter { $0 is any PlainOperation.Type }

    /// How the server's reading of a frame compares with Foundation's.
    package enum Comparison {
        /// The frame isn't JSON, or contains something that can't be stored exactly.
        case none
        /// Both mean the same.
        case same
        /// Both mean the same, and Foundation wasn't used: the operation read its own fields.
        case sameFieldByField(operation: String)
        case different(String)
    }

    /// Reads a message as the server does, and again entirely with Foundation, and compares operations, fields and refusals.
    package static func comparison(_ bytes: [UInt8]) throws -> Comparison {
        guard let scan = try? JSONScan(bytes), scan.problem == nil else { return .none }
        let (message, expected) = (ClientMessage(ByteBuffer(bytes: bytes)), readByFoundation(bytes))
        let (written, writtenExpected) = (try description(of: message), try description(of: expected))
        guard written == writtenExpected, isSameOperation(message, expected) else {
            if differByOrder(message, expected) { return .same }
            return .different(
                "\(String(decoding: written, as: UTF8.self)), not \(String(decoding: writtenExpected, as: UTF8.self))")
        }
        guard let envelope = CallEnvelope(bytes), envelope.plainOperation(in: bytes) != nil else { return .same }
        return .sameFieldByField(operation: envelope.operation)
    }

    private static func readByFoundation(_ bytes: [UInt8]) -> ClientMessage {
        do {
            return try ClientMessage(byFoundation: bytes)
        } catch {
            return .malformed(RoostError(decoding: error))
        }
    }

    /// Everything in a message, as bytes: texts that only look the same differ.
    private static func description(of message: ClientMessage) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let (head, value): (String, any Encodable) =
            switch message {
            case .authenticate(let credentials): ("authenticate", credentials)
            case .unreadableCredentials(let error): ("unreadable credentials", error)
            case .call(let call, let operation, let key): ("call \(call) \(type(of: operation)) \(key?.rawValue ?? "")", operation)
            case .refused(let call, let error): ("refused \(call)", error)
            case .malformed(let error): ("malformed", error)
            }
        return Array("\(head) ".utf8) + (try encoder.encode(value))
    }

    /// Whether both refuse the same call and differ only by a dictionary's order, which decides which of several wrong members is reported,
    /// as for an object without fixed fields.
    private static func differByOrder(_ message: ClientMessage, _ other: ClientMessage) -> Bool {
        guard case .refused(let call, let error) = message, case .refused(let otherCall, let otherError) = other else {
            return false
        }
        return call == otherCall
            && [error, otherError].contains { error in
                guard let field = error.field else { return false }
                return error.message.hasPrefix("\(field) is not a ") || mapNames.contains(String(field.prefix { $0 != "." }))
            }
    }

    /// The operations' fields whose values are objects without fixed fields.
    private static let mapNames = Set(
        OperationTable.handled.flatMap { type in
            (OperationTable.named(type.name)?.schema.fields ?? []).filter { if case .map = $0.schema { true } else { false } }.map(
                \.name)
        })

    /// Whether the operations are equal, if both are calls: JSON doesn't show a value's type.
    private static func isSameOperation(_ message: ClientMessage, _ other: ClientMessage) -> Bool {
        guard case .call(_, let operation, _) = message, case .call(_, let otherOperation, _) = other else { return true }
        return AnyHashable(operation) == AnyHashable(otherOperation)
    }

    /// Makes a node that follows a channel take bytes as a packet of the bus, twice.
    ///
    /// - Returns: Whether the bytes are a packet.
    package static func deliver(_ bytes: [UInt8], of channel: ChannelID) -> Bool {
        guard let items = Packet.decode(bytes, of: .channel(channel)) else { return false }
        var relay = Relay()
        relay.follow(.channel(channel))
        relay.handle(.opened([.channel(channel): 3]), at: 0)
        for time in [0, 20, 40] as [Relay.Time] {
            relay.handle(.received(items), at: time)
            relay.handle(.tick, at: time)
        }
        return true
    }

    /// Makes a bus packet, as a node does.
    package static func packet(of channel: ChannelID, json: [UInt8]) -> [UInt8] {
        Packet.encode([StreamItem(stream: .channel(channel), after: 3, seq: 4, left: [.init(user: "ann", seq: 4)], json: json)])
            .first?.bytes ?? []
    }

    /// Makes a node take bytes as another node's report of who is present in a channel, and then a report of a second node.
    ///
    /// - Returns: The number of members online afterwards; nil if no node can have sent the bytes.
    package static func onlineCount(_ bytes: [UInt8], in channel: ChannelID) -> Int? {
        guard let message = try? JSONDecoder().decode(ClusterPresence.Message.self, from: Data(bytes)) else { return nil }
        let presence = ClusterPresence(node: NodeID("own"), board: PresenceBoard()) { _, _ in }
        presence.receive(.heartbeat(NodeID("other"), isNew: true), at: 0)
        presence.prepare(channel, at: 0) {}
        presence.receive(message, at: 1)
        presence.receive(
            .present(channel, .init(node: NodeID("other"), online: ["ann"], onlineBeyond: 1, watchers: [], watchersBeyond: 0)),
            at: 2)
        _ = presence.tick(at: 1000)
        return presence.onlineMemberCount(of: channel)
    }

    /// Makes a node's report of who is present in a channel.
    package static func presence(in channel: ChannelID, node: String) -> [UInt8] {
        let present = ClusterPresence.Present(
            node: NodeID(node), online: ["ann", "bob"], onlineBeyond: 3, watchers: ["cat"], watchersBeyond: 0)
        return (try? JSONEncoder().encode(ClusterPresence.Message.present(channel, present))).map(Array.init) ?? []
    }

    /// Makes a node take bytes as another node's news of a channel or a user, and deliver the result.
    ///
    /// - Returns: The number of resulting signals and changes to connections; nil if no node can have sent the bytes.
    package static func signalCount(_ bytes: [UInt8], in channel: ChannelID, of user: UserID) -> Int? {
        guard let news = NodeSignal(bytes, of: .channel(channel)) ?? NodeSignal(bytes, of: .user(user)) else { return nil }
        var (board, frames, hub) = (SignalBoard(), EventFrames(), Subscriptions<Int>())
        switch news.notice {
        case .typing(let user, let channel): board.types(user, in: channel, at: 0)
        case .stoppedTyping(let user, let channel): board.stopsTyping(user, in: channel)
        case .read(let position, let channel): board.reads(position, in: channel)
        case .profileShown(let user, let channel): board.shows(user, in: channel)
        case .signal(let signal, let audience): frames.add(signal, to: audience)
        default: frames.change(news.notice)
        }
        for step in frames.steps { hub.deliver(step) { _ in } }
        return frames.steps.count + board.takeDue(at: 0, presence: PresenceBoard()).count
    }

    /// Makes a node's news.
    package static func news(in channel: ChannelID, of user: UserID, _ number: Int) -> [UInt8] {
        let position = ReadPosition(userId: user, readSeq: 7, lastReadAt: Timestamp(milliseconds: 1))
        let wave = Signal(kind: .custom, channel: channel, sender: user, custom: CustomSignal(type: "wave", metadata: ["n": 1]))
        let all: [NodeSignal] = [
            .typing(user, channel), .stoppedTyping(user, channel), .read(position, channel), .signal(wave),
            .markedUnread(user, channel, at: 3),
            .profileShown(UserSummary(userId: user, displayName: "Ann", version: 2), channel),
        ]
        return all[number % all.count].payload ?? []
    }

    /// Makes a channel read bytes as a connection of the server does, up to the decoding of frames, without serving anything: each request is
    /// answered with 200, and each message is decoded and dropped.
    package static func install(on channel: any NIOCore.Channel) throws {
        let upgrader = SocketUpgrader<Void>(mayUpgrade: SocketRequest.opensSocket) { channel, _ in
            try HTTPPipeline.uninstall(from: channel)
            try channel.pipeline.syncOperations.addHandler(FrameSink())
        }
        let configuration = NIOTypedHTTPServerUpgradeConfiguration<Void>(
            upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(RequestSink()) }
            })
        // A connection that closes during setup isn't a failure here.
        _ = try HTTPPipeline.install(on: channel, limits: .init(), metrics: metrics, upgrade: configuration)
    }

    /// Answers requests.
    private final class RequestSink: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["content-length": "0"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Reads a socket's frames.
    private final class FrameSink: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var reader = FrameReader()
        private var assembler = FrameAssembler()

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            reader.receive(unwrapInboundIn(data))
            do {
                while let frame = try reader.next(sizeBytesMax: Limits.messageSizeBytes) {
                    switch assembler.receive(frame) {
                    case .message(let message): _ = UntrustedBytes.message(Array(message.readableBytesView))
                    case .ping, .pong, .incomplete: break
                    case .close, .violation: return context.close(promise: nil)
                    }
                }
                reader.settle()
            } catch {
                context.close(promise: nil)
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
