import Foundation
import RoostAPI

/// A frame from the server, read without insisting on what this version doesn't know.
///
/// A server may be newer than an app. An unknown event kind, a row with a value that this version can't read or an unknown error
/// code must never stop the stream, so each row is read for itself and those that can't be are counted and left out.
struct IncomingFrame: Decodable {
    var reply: Int64?
    var error: RoostError?
    var welcome: Welcome?
    var closing: ClosingFrame.Closing?
    var unwatched: UnwatchedFrame.Unwatched?
    var event: IncomingEvent?
    /// Nil also for one that this version can't read.
    var signal: Signal?

    /// The part of the server's welcome that the client needs.
    struct Welcome: Decodable, Hashable {
        var user: UserID
        /// The user's role in the app; nil for a role that this version doesn't know.
        var role: AppRole?
        /// Nil of a server that has no name.
        var server: String?
        var epoch: String
        /// The server's clock; nil of a server that doesn't tell it.
        var now: Timestamp?
        var pingIntervalSeconds: Int

        private enum CodingKeys: String, CodingKey { case user, role, server, epoch, now, pingIntervalSeconds }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            user = try container.decode(UserID.self, forKey: .user)
            role = try container.decodeIfPresent(String.self, forKey: .role).flatMap(AppRole.init(rawValue:))
            server = try container.decodeIfPresent(String.self, forKey: .server)
            epoch = try container.decode(String.self, forKey: .epoch)
            now = try container.decodeIfPresent(Timestamp.self, forKey: .now)
            pingIntervalSeconds = try container.decode(Int.self, forKey: .pingIntervalSeconds)
        }
    }

    private enum CodingKeys: String, CodingKey { case reply, error, welcome, closing, unwatched, event, message, signal }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        reply = try container.decodeIfPresent(Int64.self, forKey: .reply)
        error = try container.decodeIfPresent(LenientError.self, forKey: .error)?.error
        welcome = try container.decodeIfPresent(Welcome.self, forKey: .welcome)
        closing = try container.decodeIfPresent(ClosingFrame.Closing.self, forKey: .closing)
        unwatched = try container.decodeIfPresent(UnwatchedFrame.Unwatched.self, forKey: .unwatched)
        signal = container.contains(.signal) ? try? Signal(from: decoder) : nil
        event = container.contains(.event) || container.contains(.message) ? try IncomingEvent(from: decoder) : nil
    }

    init(_ bytes: [UInt8], _ kinds: RowKinds = .standard) throws {
        self = try JSONDecoder(reading: kinds).decode(Self.self, from: Data(bytes))
    }
}

/// An event, whatever its kind: the rows say what to store, so the kind needs no understanding. It is only told to the app.
struct IncomingEvent: Decodable {
    var kind: String
    /// Who made the change; nil if that isn't told.
    var actor: UserID?
    var stream: StreamID
    var seq: Seq
    /// The position that it follows, if that isn't the one before `seq`.
    var after: Seq?
    var rows: LenientRows
    /// Whether it came as a new message alone, from which the channel's counters follow (``EventFrame``).
    var isMessageAlone: Bool

    private enum CodingKeys: String, CodingKey {
        case kind = "event"
        case actor, stream, seq, after, rows, message
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        isMessageAlone = container.contains(.message)
        guard isMessageAlone else {
            kind = try container.decode(String.self, forKey: .kind)
            actor = try container.decodeIfPresent(UserID.self, forKey: .actor)
            stream = try container.decode(StreamID.self, forKey: .stream)
            seq = try container.decode(Seq.self, forKey: .seq)
            after = try container.decodeIfPresent(Seq.self, forKey: .after)
            rows = try container.decode(LenientRows.self, forKey: .rows)
            return
        }
        let message = try container.decode(IncomingMessage.self, forKey: .message)
        (stream, seq, rows) = (message.stream, message.seq, message.rows)
        (kind, actor) = (Event.Kind.messageNew.rawValue, message.sender)
    }
}

/// An answer to `stream.resume`.
struct IncomingResumption: Decodable {
    var user: IncomingChanges
    var channels: [IncomingChanges]
    var hasMore: Bool
    var users: LenientUsers?
}

/// The changes of one stream, as ``Changes`` describes them.
struct IncomingChanges: Decodable {
    var stream: StreamID
    var rows: LenientRows
    var seq: Seq
    var isFresh: Bool?
}

/// The result of a reply whose type the caller knows.
struct ReplyResult<Value: Decodable>: Decodable {
    var result: Value

    static func decode(_ bytes: [UInt8], _ kinds: RowKinds = .standard) throws -> Value {
        try JSONDecoder(reading: kinds).decode(Self.self, from: Data(bytes)).result
    }
}

extension JSONDecoder {
    fileprivate convenience init(reading kinds: RowKinds) {
        self.init()
        if let key = RowKinds.userInfoKey { userInfo[key] = kinds }
    }
}

/// An error whose code may be newer than this version.
private struct LenientError: Decodable {
    var error: RoostError

    private enum CodingKeys: String, CodingKey { case code, message }

    init(from decoder: any Decoder) throws {
        do {
            error = try RoostError(from: decoder)
        } catch {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            let code = try container.decode(String.self, forKey: .code)
            let message = try container.decodeIfPresent(String.self, forKey: .message) ?? "The server refused."
            // A refusal that this version doesn't know is a final one: trying it again unchanged would be guesswork.
            self.error = RoostError(.notPermitted, "\(message) (\(code))", rule: code)
        }
    }
}
