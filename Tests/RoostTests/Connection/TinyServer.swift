import Foundation
import Roost
import RoostAPI

/// A server of one channel, `general`, in the process: enough of the protocol to test a client from outside.
actor TinyServer: Transport {
    private var messages = [
        Message(
            messageId: MessageID(rawValue: 1), channelId: "general", seq: 2, changeSeq: 2, sender: "bob", clientId: "b1",
            text: "welcome",
            createdAt: Timestamp(milliseconds: 0))
    ]
    private var readCount = 0

    private struct Frame: Decodable {
        struct Draft: Decodable {
            var text: String?
            var clientId: ClientID?
        }
        var authenticate: AuthenticateFrame.Credentials?
        var call: Int64?
        var operation: String?
        var with: Draft?
    }

    private struct Reply<Value: Encodable>: Encodable {
        var reply: Int64
        var result: Value
    }

    nonisolated func run(
        url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
    ) async {
        await receive(.opened)
        for await command in outgoing {
            guard case .message(let bytes) = command, let frame = try? JSONDecoder().decode(Frame.self, from: Data(bytes)) else {
                continue
            }
            for answer in (try? await answers(to: frame)) ?? [] { await receive(.message(answer)) }
        }
        await receive(.closed(code: nil, reason: ""))
    }

    private func answers(to frame: Frame) throws -> [[UInt8]] {
        if frame.authenticate != nil {
            let now = Timestamp(milliseconds: 0)
            let welcome = WelcomeFrame.Welcome(
                user: "ann", role: .user, connection: 1, server: "server", epoch: "first", version: "0.1.0", now: now,
                tokenExpiresAt: now,
                pingIntervalSeconds: 30)
            return [try JSONWriter.bytes(of: WelcomeFrame(welcome: welcome))]
        }
        guard let call = frame.call else { return [] }
        switch frame.operation {
        case "stream.resume": return [try JSONWriter.bytes(of: Reply(reply: call, result: resumption))]
        case "message.send":
            let message = store(frame.with?.text ?? "", frame.with?.clientId ?? "")
            return [
                try JSONWriter.bytes(of: EventFrame(watching: false, event: Event(of: message))),
                try JSONWriter.bytes(of: Reply(reply: call, result: message)),
            ]
        default: return []
        }
    }

    private func store(_ text: String, _ clientId: ClientID) -> Message {
        let seq = counters.seq + 1
        let message = Message(
            messageId: MessageID(rawValue: seq), channelId: "general", seq: seq, changeSeq: seq, sender: "ann", clientId: clientId,
            text: text,
            createdAt: Timestamp(milliseconds: seq))
        messages.append(message)
        readCount += 1
        return message
    }

    private var counters: ChannelCounters {
        ChannelCounters(
            seq: messages.last?.seq ?? 1, memberCount: 2, messageCount: messages.count, lastActivity: Timestamp(milliseconds: 0))
    }

    private var resumption: Resumption {
        let start = Timestamp(milliseconds: 0)
        let channel = Channel(
            channelId: "general", type: .community, counters: counters, createdBy: "bob", createdAt: start, updatedAt: start)
        let membership = Membership(
            channelId: "general", role: .member, state: .member, joinedAt: start, joinedSeq: 1, readSeq: 1, readCount: readCount,
            channelSeq: counters.seq, userSeq: 1)
        let rows = Rows(channel: channel, messages, [membership])
        return Resumption(
            user: Changes(stream: .user("ann"), rows: Rows(), seq: 1, hasMore: false),
            channels: [Changes(stream: .channel("general"), rows: rows, seq: counters.seq, hasMore: false, isFresh: true)],
            hasMore: false)
    }
}
