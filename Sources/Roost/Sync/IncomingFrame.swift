import Foundation
import RoostAPI

/// A frame from the server, read leniently about what this version doesn't know.
///
/// A server may be newer than an app. An unknown event kind, a row with a value that this version can't read or an unknown error code must never stop
/// the stream, so each row is read separately, and unreadable rows are counted and left out.
struct IncomingFrame: Decodable {
    var reply: Int64?
    var error: RoostError?
    var welcome: Welcome?
    var closing: ClosingFrame.Closing?
    var unwatched: UnwatchedFrame.Unwatched?
    var readingEnded: ReadingEndedFrame.ReadingEnded?
    var event: IncomingEvent?
    /// Nil also for a signal that this version can't read.
    var signal: Signal?

    /// The part of the server's welcome that the client needs.
    struct Welcome: Decodable, Hashable {
        var user: UserID
        /// The user's role in the app; nil for a role that this version doesn't know.
        var role: AppRole?
        /// Nil from a server without a name.
        var server: String?
        var epoch: String
        /// The server's clock; nil from a server that doesn't send it.
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

    private enum CodingKeys: String, CodingKey {
        case reply, error, welcome, closing, unwatched, readingEnded, event, message, signal
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        reply = try container.decodeIfPresent(Int64.self, forKey: .reply)
        error = try container.decodeIfPresent(LenientError.self, forKey: .error)?.value
        welcome = try container.decodeIfPresent(Welcome.self, forKey: .welcome)
        closing = try container.decodeIfPresent(ClosingFrame.Closing.self, forKey: .closing)
        unwatched = try container.decodeIfPresent(UnwatchedFrame.Unwatched.self, forKey: .unwatched)
        readingEnded = try container.decodeIfPresent(ReadingEndedFrame.ReadingEnded.self, forKey: .readingEnded)
        signal = container.contains(.signal) ? try? Signal(from: decoder) : nil
        event = container.contains(.event) || container.contains(.message) ? try IncomingEvent(from: decoder) : nil
    }

    init(_ bytes: [UInt8], _ kinds: RowKinds = .standard) throws {
        if let frame = Self(plainly: bytes, kinds) {
            self = frame
        } else {
            try self.init(byFoundation: bytes, kinds)
        }
    }

    init(byFoundation bytes: [UInt8], _ kinds: RowKinds) throws {
        self = try JSONDecoder(reading: kinds).decode(Self.self, from: Data(bytes))
    }

    /// Reads a reply or an event, which nearly all frames are. The result of a reply, with which the frame ends, is read by the caller that knows its type.
    init?(plainly bytes: [UInt8], _ kinds: RowKinds) {
        var json = PlainJSON(bytes)
        var (kind, actor, stream, seq, after): (String?, UserID?, String?, Seq?, Seq?)
        var (rows, message): (LenientRows?, IncomingMessage?)
        var isWatched: Bool?
        var isResult = false
        let isPlain = json.members { key, json in
            switch key {
            case "reply": return json.read(into: &reply)
            case "result" where reply != nil && bytes.last == UInt8(ascii: "}"):
                isResult = !json.takeNull()
                return false
            case "event": return json.read(into: &kind)
            case "actor": return json.read(into: &actor)
            case "stream": return json.read(into: &stream)
            case "seq": return json.read(into: &seq)
            case "after": return json.read(into: &after)
            case "rows": return json.read(into: &rows) { LenientRows(plainly: &$0, kinds) }
            case "message": return json.read(into: &message)
            case "watching": return json.read(into: &isWatched)
            case "error", "welcome", "closing", "unwatched", "readingEnded", "signal": return false
            default: return json.pass() != nil
            }
        }
        if isResult { return }
        guard isPlain, json.isAtEnd else { return nil }
        if let message {
            guard kind == nil else { return nil }
            event = IncomingEvent(message, isWatched: isWatched ?? false)
        } else if let kind {
            guard let stream = stream.flatMap({ StreamID($0) }), let seq, let rows else { return nil }
            event = IncomingEvent(
                kind: kind, actor: actor, stream: stream, seq: seq, after: after, rows: rows, isMessageAlone: false,
                isWatched: isWatched ?? false)
        } else if reply == nil {
            return nil
        }
    }
}

/// An event of any kind: the rows say what to store, so the kind needn't be understood. It is only passed to the app.
struct IncomingEvent: Decodable {
    var kind: String
    /// The user who made the change; nil if that isn't sent.
    var actor: UserID?
    var stream: StreamID
    var seq: Seq
    /// The position that it follows, if that isn't the one before `seq`.
    var after: Seq?
    var rows: LenientRows
    /// Whether it arrived as a new message alone, from which the channel's counters follow (``EventFrame``).
    var isMessageAlone: Bool
    /// Whether this connection watched the channel when the event was sent to it.
    var isWatched: Bool

    private enum CodingKeys: String, CodingKey {
        case kind = "event"
        case actor, stream, seq, after, rows, message, watching
    }

    init(
        kind: String, actor: UserID?, stream: StreamID, seq: Seq, after: Seq? = nil, rows: LenientRows, isMessageAlone: Bool,
        isWatched: Bool
    ) {
        (self.kind, self.actor, self.stream, self.seq) = (kind, actor, stream, seq)
        (self.after, self.rows, self.isMessageAlone, self.isWatched) = (after, rows, isMessageAlone, isWatched)
    }

    /// A new message that arrived alone.
    init(_ message: IncomingMessage, isWatched: Bool) {
        self.init(
            kind: Event.Kind.messageNew.rawValue, actor: message.sender, stream: message.stream, seq: message.seq,
            rows: message.rows, isMessageAlone: true, isWatched: isWatched)
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        // Nothing stored depends on it: if it can't be read, nothing else is lost.
        let isWatched = (try? container.decodeIfPresent(Bool.self, forKey: .watching)) ?? false
        if container.contains(.message) {
            self.init(try container.decode(IncomingMessage.self, forKey: .message), isWatched: isWatched)
            return
        }
        self.init(
            kind: try container.decode(String.self, forKey: .kind),
            actor: try container.decodeIfPresent(UserID.self, forKey: .actor),
            stream: try container.decode(StreamID.self, forKey: .stream), seq: try container.decode(Seq.self, forKey: .seq),
            after: try container.decodeIfPresent(Seq.self, forKey: .after),
            rows: try container.decode(LenientRows.self, forKey: .rows), isMessageAlone: false, isWatched: isWatched)
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

extension IncomingChanges {
    fileprivate init?(plainly json: inout PlainJSON, _ kinds: RowKinds) {
        var (stream, seq, isFresh): (String?, Seq?, Bool?)
        var rows: LenientRows?
        let isPlain = json.members { key, json in
            switch key {
            case "stream": return json.read(into: &stream)
            case "seq": return json.read(into: &seq)
            case "isFresh": return json.read(into: &isFresh)
            case "rows": return json.read(into: &rows) { LenientRows(plainly: &$0, kinds) }
            default: return json.pass() != nil
            }
        }
        guard isPlain, let stream = stream.flatMap({ StreamID($0) }), let rows, let seq else { return nil }
        (self.stream, self.rows, self.seq, self.isFresh) = (stream, rows, seq, isFresh)
    }
}

extension IncomingResumption: PlainAnswer {
    init?(plainly json: inout PlainJSON, _ kinds: RowKinds) {
        var (user, channels): (IncomingChanges?, [IncomingChanges]?)
        var (hasMore, users): (Bool?, LenientUsers?)
        let isPlain = json.members { key, json in
            switch key {
            case "user": return json.read(into: &user) { IncomingChanges(plainly: &$0, kinds) }
            case "channels": return json.read(into: &channels) { $0.list { IncomingChanges(plainly: &$0, kinds) } }
            case "hasMore": return json.read(into: &hasMore)
            case "users": return json.read(into: &users) { LenientUsers(plainly: &$0) }
            default: return json.pass() != nil
            }
        }
        guard isPlain, let user, let channels, let hasMore else { return nil }
        self.init(user: user, channels: channels, hasMore: hasMore, users: users)
    }
}

/// An answer that is read without Foundation if it is plain JSON: one with thousands of rows.
protocol PlainAnswer: Decodable {
    init?(plainly json: inout PlainJSON, _ kinds: RowKinds)
}

extension ReplyResult where Value: PlainAnswer {
    static func decode(_ bytes: [UInt8], _ kinds: RowKinds = .standard) throws -> Value {
        var json = PlainJSON(bytes)
        var result: Value?
        let isPlain = json.members { key, json in
            key == "result" ? json.read(into: &result) { Value(plainly: &$0, kinds) } : json.pass() != nil
        }
        if isPlain, json.isAtEnd, let result { return result }
        return try decoded(bytes, kinds)
    }
}

/// The result of a reply whose type the caller knows.
struct ReplyResult<Value: Decodable>: Decodable {
    var result: Value

    static func decode(_ bytes: [UInt8], _ kinds: RowKinds = .standard) throws -> Value { try decoded(bytes, kinds) }

    fileprivate static func decoded(_ bytes: [UInt8], _ kinds: RowKinds) throws -> Value {
        try JSONDecoder(reading: kinds).decode(Self.self, from: Data(bytes)).result
    }
}

extension JSONDecoder {
    fileprivate convenience init(reading kinds: RowKinds) {
        self.init()
        leaveOutNewerValues()
        if let key = RowKinds.userInfoKey { userInfo[key] = kinds }
    }
}
