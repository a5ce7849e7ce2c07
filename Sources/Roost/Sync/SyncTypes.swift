import Logging
import RoostAPI

/// How far a client has followed a channel, and how far back its cached messages reach.
struct Position: Hashable, Sendable {
    /// The seq up to which the channel's stream is applied.
    var cursor: Seq
    /// Cached messages are contiguous from this seq up to the cursor. 0 if there are no older ones.
    var windowStart: Seq
    /// The number of messages in the channel at the cursor, whether this client received them or not. Nil if that isn't followed, as in an ephemeral channel.
    var messageCount: Int?
    /// Whether messages were sent that this client didn't get, because the user wasn't allowed to read, or older ones may have been changed
    /// meanwhile. The window ends before them: as soon as the user may read again, the channel is fetched again.
    var hasHole = false
    /// Whether the channel's deletion is applied, which is the end of its stream: the server is no longer asked for it. What is cached of it stays.
    var hasEnded = false
    /// Whether the channel isn't one of the user's own, and is followed only while it is watched: no resume names it, and nothing of it outlives the app's run.
    var isVisit = false
    /// Older messages that are cached apart from the window; the stretches extended longest ago come first.
    var stretches: [ClosedRange<Seq>] = []
    /// What earlier pages of the same changes have brought; nil between changes. Not stored.
    var pages: Pages?

    /// Changes that arrive in several pages, of which only the last one knows how many messages the channel has.
    struct Pages: Hashable, Sendable {
        /// Where the cursor was before the first one.
        let start: Seq
        /// The messages after it that they have brought.
        var born: Set<Seq> = []
    }

    /// Moves the cursor.
    ///
    /// - Parameters:
    ///   - counters: The channel's counters, as received.
    ///   - rows: The rows that came with it.
    mutating func advance(to seq: Seq, _ counters: ChannelCounters?, _ rows: Rows) {
        let position = cursor
        cursor = seq
        guard let messageCount else { return }
        // The counters of a page of changes are later than the page's end.
        let count = counters.flatMap { $0.seq == seq ? $0.messageCount : nil }
        // A message that was permanently deleted before its page was made is on no page, and was never counted.
        let earlier = pages ?? Pages(start: position)
        let purged = rows.purgedCount { $0 <= earlier.start || earlier.born.contains($0) }
        let given = messageCount.addingWithSaturation(rows.messageCount(after: position)).subtractingWithSaturation(purged)
        if let count, count > given { hasHole = true }
        self.messageCount = count ?? given
        guard count == nil, counters != nil else { return pages = nil }
        pages = earlier
        pages?.born.formUnion(rows.messageSeqs(after: position))
    }
}

/// The machine's initial state: the positions in the store.
struct SavedState: Hashable, Sendable {
    var epoch: String?
    /// The user's role in the app when all of this was fetched; nil if unknown.
    var role: AppRole?
    var userCursor: Seq = 0
    var channels: [ChannelID: Position] = [:]
}

/// The sender's own key of a message.
struct MessageKey: Hashable, Sendable {
    var channel: ChannelID
    var clientId: ClientID
}

/// A change of the outbox requested by the machine.
enum OutboxWrite: Hashable, Sendable {
    /// Stores an operation, whether it exists or not.
    case put(OutboxItem)
    /// Stores the progress of an operation, and with `content` its current content. Nothing is written if it no longer exists: another chat of the same
    /// files has ended it.
    case update(OutboxItem, content: Bool)
    /// Stores a new state of an operation that hasn't been sent, or removes the operation if there is none. Nothing is written if another chat of the
    /// same files has sent or discarded it.
    case change(Int64, of: ChannelID?, to: OutboxItem?)
    /// Notes that an operation is about to be sent. If another chat of the same files has noted that before, its time stays.
    case sending(Int64, of: ChannelID?, at: Timestamp, to: String?)
    /// Removes an operation that is no longer to be carried out, and with a message also its changes, whichever chat added them. It is removed even
    /// if the cache can't be written.
    case remove(Int64, of: ChannelID?)
    /// Removes an operation that the server has carried out. It stays if its effect can't be stored.
    case done(Int64, of: ChannelID?)
    /// The same for a message. From then on its changes name it by its id, including those that another chat of the same files added.
    case arrived(Int64, MessageKey, as: MessageID)
    /// The server that operations are sent to.
    case server(String)

    /// The operation that it removes.
    var removed: Int64? {
        switch self {
        case .remove(let id, _), .done(let id, _), .arrived(let id, _, _): id
        case .change(let id, _, let item): item == nil ? id : nil
        case .put, .update, .sending, .server: nil
        }
    }

    /// The channel of the operation.
    var channel: ChannelID? {
        switch self {
        case .put(let item), .update(let item, _): item.channel
        case .sending(_, let channel, _, _), .change(_, let channel, _), .remove(_, let channel), .done(_, let channel): channel
        case .arrived(_, let key, _): key.channel
        case .server: nil
        }
    }
}

/// The state of operations in the file after a write.
struct WrittenOutbox: Sendable {
    /// The operations that are about to be sent, as they are in the file: another chat may have set the time and the content before.
    var rows: [Int64: OutboxItem] = [:]
    /// The messages among them that another chat of this process had begun to send before.
    var taken: Set<Int64> = []
    /// Those that were to be changed, and that another chat has sent or discarded.
    var gone: Set<Int64> = []
    /// Those among them that still exist: another chat is sending them.
    var inFlight: [Int64: OutboxItem] = [:]

    /// Returns the operations in flight, in order, once.
    mutating func takeInFlight() -> [OutboxItem] {
        defer { inFlight = [:] }
        return inFlight.values.sorted { $0.place < $1.place }
    }

    mutating func merge(_ later: WrittenOutbox) {
        rows.merge(later.rows) { _, new in new }
        taken.formUnion(later.taken)
        gone.formUnion(later.gone)
        inFlight.merge(later.inFlight) { _, new in new }
    }
}

/// An operation in the outbox, as named by what shows it.
enum OutboxRow: Hashable, Sendable {
    case operation(Int64, of: ChannelID?)
    case message(MessageKey)
}

/// Chosen by the driver to find the caller of a reply.
typealias CallToken = Int64

extension Sync {
    /// A wait requested by the machine. Its end is reported as ``Input/timer(_:)``.
    enum Timer: Hashable, Sendable {
        case reconnect
        case token
        case handshake
        case liveness
        case call(Int64)
        /// The queue of a channel, or of operations without one.
        case outbox(ChannelID?)
        /// The draft that the user is typing in a channel.
        case draft(ChannelID)
        case users
        /// Between two requests for all users who are shown.
        case userPause
        case arrivals
        /// A report that a channel is read, or no longer is, which the server couldn't accept.
        case reading(ChannelID)
        /// A watch that the server couldn't begin.
        case watch(ChannelID)
    }

    /// Everything that can happen to a client.
    enum Input: Sendable {
        case start
        case stop
        /// The app moved to the foreground, or the network changed.
        case nudge
        case token(String)
        case tokenFailed(String)
        /// The token provider has none, and won't have one until the user has signed in to the app again.
        case tokenDenied(RoostError)
        /// The time of this device's clock. Arrives before a connection opens.
        case deviceTime(Timestamp)
        /// An event of a connection; the number is that of the ``Output/open(_:)`` that opened it.
        case transport(Int64, TransportEvent)
        case timer(Timer)
        case call(CallToken, any Operation)
        case cancel(CallToken)
        /// The same for an operation that is enqueued, if the server is asked at once instead. An operation that is kept continues.
        case cancelAsking(CallToken)
        case loadMessages(CallToken, ChannelID, MessageLoad, limit: Int)
        /// The parts of channels' cached messages that lists show, by a seq of each. Arrives before pages that would evict parts.
        case showing([ChannelID: Set<Seq>])
        /// Users who are shown, each with the known version; 0 if only the id is known.
        case show([UserID: Int64])
        /// A live object, identified by its number, watches a channel while it exists.
        case hold(CallToken, ChannelID, by: Int64)
        case release(Int64)
        /// Arrivals couldn't be reported.
        case unreported([ChannelID: Seq])
        /// An operation to keep until it is carried out, with a random id and this device's time. If it marks the channel as read, `serverReadSeq` is
        /// how far the server has reported that the channel is read. If it deletes or restores one message, `mayBeDeleted` is whether the server may have
        /// deleted that.
        case enqueue(CallToken, OutboxOperation, id: Int64, at: Timestamp, serverReadSeq: Seq = 0, mayBeDeleted: Bool = false)
        case startReading(CallToken, ChannelID)
        /// The app is in the background: the user sees nothing of the channels that they read.
        case pauseReading
        /// The app is in the foreground again.
        case continueReading
        /// With the values for the read mark that is enqueued.
        case stopReading(CallToken, ChannelID, id: Int64, at: Timestamp, serverReadSeq: Seq = 0)
        /// What the machine had written for the operation of ``Output/awaitKept(_:_:of:)`` is in the file, unless that was a change of an operation or of
        /// a message that is gone: another chat of the same files has sent or discarded it. Carries, in order, the operations to change or remove
        /// that another chat is sending: they stay.
        case kept(CallToken, Int64, of: ChannelID?, isGone: Bool = false, inFlight: [OutboxItem] = [])
        /// The note requested by ``Output/awaitNoted(_:of:)`` is in the file. Carries the operation as it is there, which another chat of the same files
        /// may have changed; nil if it no longer exists. Also carries whether that chat has begun to send it before.
        case noted(Int64, of: ChannelID?, as: OutboxItem?, isTaken: Bool = false)
        /// The outbox couldn't be written. Carries the file's content if a caller waited for something to be kept; nil if that can't be read either. Also
        /// carries the reason, and the code that callers get.
        case outboxFailed(SavedOutbox?, String, code: RoostError.Code = .storageFailed, isAwaited: Bool = true)
        case retry(OutboxRow)
        case discard(OutboxRow)
        /// Operations meant for another server are sent to this one, or discarded.
        case resolveOthers(discard: Bool)
        /// Rows couldn't be stored, or stored ones are damaged. Carries the stored state and the content of the outbox; nil if that can't be read.
        case storeFailed(SavedState, SavedOutbox?, String)
        /// The app wasn't notified of what was missed, because the last part of it couldn't be stored.
        case missedAgain([ChannelID: Seq])
        /// The files were released, and are open again. Carries their content: other processes may have had them.
        case reopened(SavedState, SavedOutbox)
        /// Another chat has the same files. Carries the content of the outbox, before the machine decides by what it knows of it.
        case outboxRead(SavedOutbox)
        /// Another chat of the same files is gone. Carries the content of the outbox, including what that chat has left.
        case left(SavedOutbox)
        /// The cache has outgrown its size. Carries the seqs from which channels keep their messages.
        case trim([ChannelID: Seq])
    }

    /// Everything that a client does, in this order.
    enum Output: Hashable, Sendable {
        case fetchToken
        case cancelToken
        case open(Int64)
        case send([UInt8])
        /// The same, before rows are stored: the server works meanwhile. If storing fails, the connection is abandoned, and the answer with it.
        case sendBeforeStoring([UInt8])
        case ping
        case close
        /// Written in one transaction.
        case store([StoreWrite])
        case outbox(OutboxWrite)
        /// Answered by ``Input/kept(_:_:of:isGone:inFlight:)`` once all earlier writes to the outbox are in the file.
        case awaitKept(CallToken, Int64, of: ChannelID?)
        /// Answered by ``Input/noted(_:of:as:isTaken:)`` once the file says that an operation is about to be sent.
        case awaitNoted(Int64, of: ChannelID?)
        /// The frame that answers a call, or why there is none.
        case reply(CallToken, Result<[UInt8], RoostError>)
        /// The outcome of a message of the outbox, or a message as changed by an operation of the outbox.
        case settled(MessageKey, Result<Message, RoostError>)
        /// An edit was made, but the answer with the message was lost.
        case repeated(EditMessage)
        case status(Status)
        /// An event for the app, once the rows before it are stored; with its position in a channel's stream, if it has one.
        case event(ChatEvent, StreamPosition?)
        /// What happens at this moment, for those who follow it.
        case signal(Signal)
        /// A channel is watched from now on: its live events are sent from here on, and earlier ones weren't.
        case watching(ChannelID)
        /// The server has ended the watches of a channel.
        case unwatched(ChannelID)
        /// Messages of others have arrived, up to a seq in each channel.
        case arrived([ChannelID: Seq])
        case startTimer(Timer, Duration)
        case cancelTimer(Timer)
        case log(Logger.Level, String)
    }
}

extension Sync.Input {
    /// The caller that waits for the answer to a request that can be given up.
    var caller: CallToken? {
        switch self {
        case .call(let token, _), .loadMessages(let token, _, _, _), .hold(let token, _, _), .startReading(let token, _): token
        default: nil
        }
    }

    /// Whether the machine decides by its own knowledge of the outbox.
    var dependsOnOutbox: Bool {
        switch self {
        case .enqueue, .startReading, .stopReading, .retry, .discard, .resolveOthers, .transport(_, .opened): true
        default: false
        }
    }
}
