import Logging
import RoostAPI

/// How far a client has followed a channel, and how far back its cached messages reach.
struct Position: Hashable, Sendable {
    /// The seq up to which the channel's stream is applied.
    var cursor: Seq
    /// Cached messages are contiguous from this seq up to the cursor. 0 when there are no older ones.
    var windowStart: Seq
    /// The number of messages that the channel had at the cursor, received by this client or not. Nil if that isn't followed, as in an
    /// ephemeral channel.
    var messageCount: Int?
    /// Whether messages were sent that this client wasn't given, since the user might not read, or older ones may have been changed meanwhile. The window
    /// ends before them: as soon as the user reads again, the channel is fetched afresh.
    var hasHole = false
    /// Whether the channel's deletion is applied, which is the end of its stream: the server isn't asked for it any more. What is cached of it stays.
    var hasEnded = false
    /// Whether the channel is none of the user's, and is followed only as long as it is watched: no resume names it, and nothing of it outlives the app's run.
    var isVisit = false
    /// Older messages that are cached apart from the window, those first that were extended longest ago.
    var stretches: [ClosedRange<Seq>] = []
    /// What earlier pages of the same changes have brought; nil between them. It isn't stored.
    var pages: Pages?

    /// Changes that come in several pages, of which only the last one knows how many messages the channel has.
    struct Pages: Hashable, Sendable {
        /// Where the cursor was before the first one.
        let start: Seq
        /// The messages after it that they have brought.
        var born: Set<Seq> = []
    }

    /// Moves the cursor.
    ///
    /// - Parameters:
    ///   - counters: The channel's, as received.
    ///   - rows: What came with it.
    mutating func advance(to seq: Seq, _ counters: ChannelCounters?, _ rows: Rows) {
        let position = cursor
        cursor = seq
        guard let messageCount else { return }
        // Of a page of changes the counters are later than its end.
        let count = counters.flatMap { $0.seq == seq ? $0.messageCount : nil }
        // A message that was deleted for good before its page was made came with none, and was never counted.
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
    /// The user's role in the app when all of this was fetched; nil if it isn't known.
    var role: AppRole?
    var userCursor: Seq = 0
    var channels: [ChannelID: Position] = [:]
}

/// The sender's own name of a message.
struct MessageKey: Hashable, Sendable {
    var channel: ChannelID
    var clientId: ClientID
}

/// A change of the outbox requested by the machine.
enum OutboxWrite: Hashable, Sendable {
    /// Stores an operation, whether it is there or not.
    case put(OutboxItem)
    /// Stores how far an operation has come, and with its content what it asks for by now. Nothing is written if it isn't there any more: another chat of the
    /// same files has ended it.
    case update(OutboxItem, content: Bool)
    /// Stores another state of an operation that isn't sent, or removes it without one. Nothing is written if another chat of the same files has sent it, or
    /// given it up.
    case change(Int64, of: ChannelID?, to: OutboxItem?)
    /// Notes that an operation is about to be sent. Another chat of the same files may have noted that before, whose time stays then.
    case sending(Int64, of: ChannelID?, at: Timestamp, to: String?)
    /// Removes an operation that isn't to be carried out any more, and with a message the changes of it, whichever chat has put them. It goes even if the cache
    /// can't be written.
    case remove(Int64, of: ChannelID?)
    /// Removes one that the server has carried out. It stays if what it did can't be stored.
    case done(Int64, of: ChannelID?)
    /// The same for a message. The changes of it name it by its id from then on, those too that another chat of the same files has put.
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

    /// Whose operations they are.
    var channel: ChannelID? {
        switch self {
        case .put(let item), .update(let item, _): item.channel
        case .sending(_, let channel, _, _), .change(_, let channel, _), .remove(_, let channel), .done(_, let channel): channel
        case .arrived(_, let key, _): key.channel
        case .server: nil
        }
    }
}

/// What the file says of operations after it was written.
struct WrittenOutbox: Sendable {
    /// The operations that are about to be sent, as they are in the file: since when, and what they ask for, another chat may have said before.
    var rows: [Int64: OutboxItem] = [:]
    /// The messages among them that another chat of this process has begun to send before.
    var taken: Set<Int64> = []
    /// Those that were to be changed, and that another chat has sent or given up.
    var gone: Set<Int64> = []
    /// Those among them that are there: another chat is sending them.
    var underWay: [Int64: OutboxItem] = [:]

    /// Returns what is under way, in its order, once.
    mutating func takeUnderWay() -> [OutboxItem] {
        defer { underWay = [:] }
        return underWay.values.sorted { $0.place < $1.place }
    }

    mutating func merge(_ later: WrittenOutbox) {
        rows.merge(later.rows) { _, new in new }
        taken.formUnion(later.taken)
        gone.formUnion(later.gone)
        underWay.merge(later.underWay) { _, new in new }
    }
}

/// An operation in the outbox, as it is named by what shows it.
enum OutboxRow: Hashable, Sendable {
    case operation(Int64, of: ChannelID?)
    case message(MessageKey)
}

/// Chosen by the driver to find the caller of a reply again.
typealias CallToken = Int64

extension Sync {
    /// A wait requested by the machine. It comes back as ``Input/timer(_:)``.
    enum Timer: Hashable, Sendable {
        case reconnect
        case token
        case handshake
        case liveness
        case call(Int64)
        /// The queue of a channel, or of what belongs to none.
        case outbox(ChannelID?)
        /// The draft that the user types in a channel.
        case draft(ChannelID)
        case users
        /// Between two questions about all users who are shown.
        case userPause
        case arrivals
        /// What the server couldn't be told of a channel that is read, or isn't any more.
        case reading(ChannelID)
        /// A watch that the server couldn't begin.
        case watch(ChannelID)
    }

    /// All that can happen to a client.
    enum Input: Sendable {
        case start
        case stop
        /// The app came to the foreground, or the network is another.
        case nudge
        case token(String)
        case tokenFailed(String)
        /// What this device's clock says. Comes before a connection opens.
        case deviceTime(Timestamp)
        /// An event of a connection; the number is that of the ``Output/open(_:)`` that began it.
        case transport(Int64, TransportEvent)
        case timer(Timer)
        case call(CallToken, any Operation)
        case cancel(CallToken)
        /// The same for an operation that is enqueued, if the server is asked at once instead. What is kept goes on.
        case cancelAsking(CallToken)
        case loadMessages(CallToken, ChannelID, MessageLoad, limit: Int)
        /// The parts of channels' cached messages that lists show, by a seq of each. Comes before pages that would have parts given up.
        case showing([ChannelID: Set<Seq>])
        /// Users who are shown, each with the version that is known; 0 for one of whom only the id is known.
        case show([UserID: Int64])
        /// A live object watches a channel as long as it is there, by its number.
        case hold(CallToken, ChannelID, by: Int64)
        case release(Int64)
        /// What has arrived couldn't be told.
        case untold([ChannelID: Seq])
        /// An operation to be kept until it is carried out, with an id drawn at random, and this device's time. With how far the server has said that the
        /// channel is read, if the operation marks that.
        case enqueue(CallToken, OutboxOperation, id: Int64, at: Timestamp, told: Seq = 0)
        case startReading(CallToken, ChannelID)
        /// With what the mark of what was read is enqueued with.
        case stopReading(CallToken, ChannelID, id: Int64, at: Timestamp, told: Seq = 0)
        /// What the machine had written for the operation of ``Output/kept(_:_:of:)`` is in the file, unless that was a change of one that is gone, or of a
        /// message that is: another chat of the same files has sent it, or given it up. Carries, in their order, what was to be changed or removed and another chat
        /// is sending: it stays.
        case kept(CallToken, Int64, of: ChannelID?, isGone: Bool = false, underWay: [OutboxItem] = [])
        /// What ``Output/noted(_:of:)`` asked for is in the file. Carries the operation as it is there, which another chat of the same files may have changed; nil
        /// if it isn't there any more. With whether that one has begun to send it before.
        case noted(Int64, of: ChannelID?, as: OutboxItem?, isTaken: Bool = false)
        /// The outbox couldn't be written. Carries what is in the file, if somebody waited for something to be kept; nil if that can't be read either.
        case outboxFailed(SavedOutbox?, String, isAwaited: Bool = true)
        case retry(OutboxRow)
        case discard(OutboxRow)
        /// What is meant for another server is sent to this one, or given up.
        case resolveOthers(discard: Bool)
        /// Rows couldn't be stored, or those that were are damaged. Carries the state that is stored, and what is in the outbox; nil if that can't
        /// be read.
        case storeFailed(SavedState, SavedOutbox?, String)
        /// The app wasn't told what was missed, since the last part of it couldn't be stored.
        case missedAgain([ChannelID: Seq])
        /// The files were let go of, and are open again. Carries what they hold: other processes may have had them.
        case reopened(SavedState, SavedOutbox)
        /// Another chat has the same files. Carries what the outbox holds, before the machine decides by what it knows of it.
        case outboxRead(SavedOutbox)
        /// Another chat of the same files is gone. Carries what the outbox holds, with what that one has left.
        case left(SavedOutbox)
        /// The cache has outgrown its size. Carries the seqs from which channels keep their messages.
        case trim([ChannelID: Seq])
    }

    /// All that a client does, in this order.
    enum Output: Hashable, Sendable {
        case fetchToken
        case cancelToken
        case open(Int64)
        case send([UInt8])
        /// The same, before what is stored: the server works meanwhile. If storing fails, the connection is given up, and the answer with it.
        case sendAhead([UInt8])
        case ping
        case close
        /// Written in one transaction.
        case store([StoreWrite])
        case outbox(OutboxWrite)
        /// Comes back as ``Input/kept(_:_:of:isGone:underWay:)`` once all that was written to the outbox before is in the file.
        case kept(CallToken, Int64, of: ChannelID?)
        /// Comes back as ``Input/noted(_:of:as:isTaken:)`` once it is in the file that an operation is about to be sent.
        case noted(Int64, of: ChannelID?)
        /// The frame that answers a call, or why there is none.
        case reply(CallToken, Result<[UInt8], RoostError>)
        /// The outcome of a message of the outbox, or a message as a change from the outbox has made it.
        case settled(MessageKey, Result<Message, RoostError>)
        /// An edit was made, and the answer that would have had the message was lost.
        case repeated(EditMessage)
        case status(Status)
        /// News for the app, once the rows before it are stored; with its place in a channel's stream, if it has one.
        case event(ChatEvent, StreamPosition?)
        /// What happens at this moment, for whoever follows it.
        case signal(Signal)
        /// A channel is watched from now on: what happens in it at this moment is told, and what happened before wasn't.
        case watching(ChannelID)
        /// The server has ended what watched a channel.
        case unwatched(ChannelID)
        /// Messages of others have arrived, up to a seq in each channel.
        case arrived([ChannelID: Seq])
        case startTimer(Timer, Duration)
        case cancelTimer(Timer)
        case log(Logger.Level, String)
    }
}

extension Sync.Input {
    /// Who waits for the answer to a request that may be given up.
    var caller: CallToken? {
        switch self {
        case .call(let token, _), .loadMessages(let token, _, _, _), .hold(let token, _, _), .startReading(let token, _): token
        default: nil
        }
    }

    /// Whether the machine decides by what it knows of the outbox.
    var dependsOnOutbox: Bool {
        switch self {
        case .enqueue, .startReading, .stopReading, .retry, .discard, .resolveOthers, .transport(_, .opened): true
        default: false
        }
    }
}
