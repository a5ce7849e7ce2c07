import NIOCore
import RoostAPI
import RoostCore

/// Builds the bytes of a batch, ready to be written to any number of sockets.
///
/// Successive events of one audience share a buffer, so a socket gets them in one write. A channel's order is kept. Three things end a
/// buffer: a change of an audience; an event of a user's own stream, since a user's read position counts messages of a channel, and is best
/// delivered between the messages around it; and a concealable event, which differs by receiver.
struct EventFrames {
    /// One step of delivery, in order.
    enum Step: Sendable {
        case send(Audience, Frames)
        /// An event for the connections of one user. Only a loop that has some encodes it: most of the users aren't connected to it.
        indirect case sendToUser(UserID, Event)
        /// An event with messages that may be hidden from some of the audience.
        indirect case sendConcealable(Audience, ConcealableEvent)
        /// An event of the past, for newcomers to a channel. A connection that already gets the channel's events has received it, or will.
        case catchUp(Newcomers, ChannelID, Readers, Frames)
        indirect case catchUpConcealable(Newcomers, ConcealableEvent)
        /// Of several signals with one key that are delivered together, only the newest is kept.
        indirect case signal(SignalFrame, Audience)
        case change(Notice)
        /// A connection has asked to watch a channel, at a seq. It may not get the channel's events yet.
        case watches(ConnectionID, UserID, ChannelID, at: Seq, online: Int? = nil)
        /// A connection gets the events of a channel that its user is a member of.
        case attach(ConnectionID, ChannelID)
        /// A connection gets the events of a channel that it watches, if it still does.
        case attachWatcher(ConnectionID, ChannelID)
        case reply(SocketID, [UInt8])
    }

    /// The connections that catch up with a channel's stream.
    enum Newcomers: Hashable, Sendable {
        case connection(ConnectionID)
        /// A watching connection, whose user may be a non-member.
        case watcher(ConnectionID)
        /// All connections of a user.
        case member(UserID)

        var isByMembership: Bool { if case .watcher = self { false } else { true } }
    }

    /// The same events twice: for watchers, and for all others.
    struct Frames: Sendable {
        var watching = ByteBuffer()
        var notification = ByteBuffer()
        var eventCount = 0
        /// The seq of the newest of them in its stream.
        var newestSeq: Seq = 0
        /// The seq up to which a receiver of them has every message; nil if some may be in a later event.
        var readableSeq: Seq?

        var sizeBytes: Int { watching.readableBytes + notification.readableBytes }

        func bytes(isWatching: Bool) -> ByteBuffer { isWatching ? watching : notification }
    }

    private(set) var steps: [Step] = []
    /// The index in `steps` of a channel's buffer that may still grow.
    private var open: [ChannelID: Int] = [:]
    /// The index in `steps` of the newest signal of a key, for each audience.
    private var signals: [SignalPlace: Int] = [:]

    private struct SignalPlace: Hashable {
        let key: Signal.Key
        let audience: Audience
    }

    /// Adds an event of a stream, as its members in JSON.
    ///
    /// - Parameters:
    ///   - oldestMessage: The smallest seq of the event's messages if one of them may be hidden from a receiver; otherwise nil.
    ///   - isPartial: Whether messages from before the event's seq may be in a later event.
    mutating func add(
        _ members: [UInt8], of stream: StreamID, at seq: Seq, oldestMessage: Seq?, isPartial: Bool = false,
        readers: Readers = Readers(), to audience: Audience
    ) {
        var channel: ChannelID?
        if case .channel(let id, _) = audience { channel = id } else { open.removeAll(keepingCapacity: true) }
        if case .channel(let id) = stream, let oldestMessage {
            open[id] = nil
            steps.append(
                .sendConcealable(
                    audience,
                    ConcealableEvent(
                        members, of: id, at: seq, oldestMessage: oldestMessage, isPartial: isPartial, readers: readers)))
            return
        }
        // Events with other readers get their own buffer.
        if let channel, let index = open[channel], case .send(audience, var frames) = steps[index] {
            // Taken out while it grows, so the buffer isn't copied.
            steps[index] = .send(audience, Frames())
            frames.append(members, at: seq, isPartial: isPartial)
            steps[index] = .send(audience, frames)
        } else {
            var frames = Frames()
            if case .user = audience {
                frames.appendNotification(members, at: seq)
            } else {
                frames.append(members, at: seq, isPartial: isPartial)
            }
            if let channel { open[channel] = steps.count }
            steps.append(.send(audience, frames))
        }
    }

    /// Adds an event for the connections of one user.
    mutating func addNotification(_ event: Event, to user: UserID) {
        open.removeAll(keepingCapacity: true)
        steps.append(.sendToUser(user, event))
    }

    /// Adds an event of the past.
    mutating func add(
        _ members: [UInt8], of channel: ChannelID, at seq: Seq, oldestMessage: Seq?, isPartial: Bool = false, readers: Readers,
        toNewcomers newcomers: Newcomers
    ) {
        // The channel's audience doesn't get it, but events before it and after it don't share a buffer.
        open.removeAll(keepingCapacity: true)
        if let oldestMessage {
            let event = ConcealableEvent(
                members, of: channel, at: seq, oldestMessage: oldestMessage, isPartial: isPartial, readers: readers)
            steps.append(.catchUpConcealable(newcomers, event))
        } else {
            var frames = Frames()
            frames.append(members, at: seq, isPartial: isPartial)
            steps.append(.catchUp(newcomers, channel, readers, frames))
        }
    }

    /// Adds a signal, which replaces an older one of its key. Signals aren't ordered with events.
    mutating func add(_ signal: Signal, to audience: Audience) {
        let place = SignalPlace(key: signal.key, audience: audience)
        if let index = signals[place] {
            steps[index] = .signal(SignalFrame(signal.afterLoss), audience)
        } else {
            signals[place] = steps.count
            steps.append(.signal(SignalFrame(signal), audience))
        }
    }

    mutating func watches(_ connection: ConnectionID, _ user: UserID, _ channel: ChannelID, at seq: Seq, online: Int?) {
        open.removeAll(keepingCapacity: true)
        steps.append(.watches(connection, user, channel, at: seq, online: online))
    }

    mutating func change(_ notice: Notice) {
        open.removeAll(keepingCapacity: true)
        steps.append(.change(notice))
    }

    mutating func attach(_ connection: ConnectionID, to channel: ChannelID) {
        open.removeAll(keepingCapacity: true)
        steps.append(.attach(connection, channel))
    }

    mutating func attachWatcher(_ connection: ConnectionID, to channel: ChannelID) {
        open.removeAll(keepingCapacity: true)
        steps.append(.attachWatcher(connection, channel))
    }

    mutating func reply(_ payload: [UInt8], to socket: SocketID) { steps.append(.reply(socket, payload)) }

    /// The steps of a whole batch, in the order of its operations: for each, its events, then its reply.
    static func steps(for committed: [Committed]) -> [Step] {
        var frames = EventFrames()
        for operation in committed {
            for notice in operation.notices {
                switch notice {
                case .event(let event, .user(let user)): frames.addNotification(event, to: user)
                case .event(let event, let audience):
                    let oldestMessage = event.oldestMessage(to: audience.readers)
                    frames.add(
                        event.members(isConcealable: oldestMessage != nil), of: event.stream, at: event.seq,
                        oldestMessage: oldestMessage, readers: audience.readers, to: audience)
                case .signal(let signal, let audience): frames.add(signal, to: audience)
                // The signal board sends these when they are due.
                case .typing, .stoppedTyping, .read, .profileChanged, .profileShown, .rulesChanged: break
                default: frames.change(notice)
                }
            }
            if case .socket(let socket, let payload) = operation.answer { frames.reply(payload, to: socket) }
        }
        return frames.steps
    }
}

extension Audience {
    var readers: Readers {
        switch self {
        case .channel(_, let readers), .watchers(_, let readers): readers
        case .user: Readers()
        }
    }
}

extension Event {
    /// Returns the smallest seq of the event's messages if one of them may be hidden from a receiver; otherwise nil.
    func oldestMessage(to readers: Readers) -> Seq? {
        readers.areAllMembers ? oldestMessage : rows.oldestConcealed
    }

    /// The event as it is sent to connections of a user, whatever these watch.
    var notification: ByteBuffer {
        var bytes = ByteBuffer()
        bytes.writeTextFrame(Self.notificationStart, members(isConcealable: oldestMessage != nil), "}")
        return bytes
    }

    /// Its approximate size in bytes when written.
    fileprivate var sizeBytes: Int { 300 + (rows.channel?.contentSizeBytes ?? 0) + rows.contentSizeBytes }

    fileprivate static let notificationStart: StaticString = #"{"watching":false,"#

    /// Returns the members of the event as JSON, without the braces: encoded once for all receivers.
    ///
    /// - Parameter isConcealable: Whether a message may be hidden from a receiver. If so, what that receiver gets is made from all the
    ///   members; otherwise they have their smallest form (``EventFrame``).
    func members(isConcealable: Bool) -> [UInt8] {
        var json = JSONBytes(capacity: 512)
        if isConcealable { writeMembers(to: &json) } else { writeSmallestMembers(to: &json) }
        return json.bytes
    }
}

extension EventFrames.Frames {
    /// Adds an event whose members are given as JSON, with the mark before them.
    ///
    /// - Parameter isPartial: Whether messages from before the event's seq may be in a later event.
    mutating func append(_ members: [UInt8], at seq: Seq, isPartial: Bool = false) {
        if !isPartial { readableSeq = max(readableSeq ?? 0, seq) }
        watching.writeTextFrame(#"{"watching":true,"#, members, "}")
        appendNotification(members, at: seq)
    }

    /// Adds an event of a user's own stream: all their connections get it as a notification.
    mutating func appendNotification(_ members: [UInt8], at seq: Seq) {
        notification.writeTextFrame(Event.notificationStart, members, "}")
        eventCount += 1
        newestSeq = max(newestSeq, seq)
    }
}

extension EventFrames.Step {
    /// The size of its frames. An event for one user has none until it is written for their connections: their expected size counts, once.
    var sizeBytes: Int {
        switch self {
        case .send(_, let frames), .catchUp(_, _, _, let frames): frames.sizeBytes
        case .sendConcealable(_, let event), .catchUpConcealable(_, let event): event.frames.sizeBytes + event.members.count
        case .signal(let signal, _): signal.bytes.readableBytes
        case .reply(_, let payload): payload.count
        case .sendToUser(_, let event): event.sizeBytes
        case .change, .watches, .attach, .attachWatcher: 0
        }
    }
}
