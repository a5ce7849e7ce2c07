public import RoostAPI

/// A caller of an operation in a channel.
public struct ChannelCaller: Hashable, Sendable {
    public let user: UserID
    public let channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(user: UserID, channel: ChannelID) {
        self.user = user
        self.channel = channel
    }
}

/// A writing transaction's knowledge of channels and their members, which saves reading them again, and the pending writes of
/// what messages have changed in them.
///
/// A transaction runs a batch of operations, most of them messages to the same few channels, or changes of these. Each needs
/// the channel's head and its sender's membership, and a new message moves both; read once and written once per batch, they
/// cost a message nothing. It is exact:
///
/// 1. Only a message adds to it, new (``Context/moveStream(to:byMessageThatCounts:)``) or changed
///    (``Context/moveStream(byChangeIn:)``), and only in a channel that the transaction has locked; the users it mentions too,
///    with their own streams, once the transaction has locked those.
/// 2. Pending writes are written before any other statement reads or writes. After one that writes, everything is read again.
/// 3. Statements that touch neither heads nor memberships declare so (``Transaction/bypassingBatchMemory(_:)``), and so do those
///    that read or write one member's row (``Transaction/write(_:toMember:of:)``): pending writes of other members, and of the
///    channel, don't concern them.
/// 4. When an operation is undone, the writes that were pending before it are pending again.
///
/// The engines' transactions have one each, and call it. It is used by one thread at a time, and ends with the transaction.
public final class BatchMemory {
    /// The part of a channel that all its members share, and the members looked up so far.
    private final class Known {
        var access: ChannelAccess
        var members: [UserID: ChannelAccess.MemberRow] = [:]
        /// Whether members' messages were deleted for good, by the client ids looked up so far.
        var isPurged: [UserID: [ClientID: Bool]] = [:]
        /// The newest mention of the channel, if this transaction has written it.
        var mention: WrittenChannelMention?

        init(_ access: ChannelAccess) { self.access = access }

        func addMessage(of sender: UserID, count: Int, _ counters: ChannelCounters) {
            access.counters = counters
            members[sender]?.addMessage(at: counters.seq, count: count)
        }
    }

    /// A channel's pending writes. Without counters, the head has none.
    private struct PendingWrites {
        var counters: ChannelCounters?
        var senders: [UserID: Sent] = [:]
        var mentioned: [UserID: NewestMention] = [:]

        var isEmpty: Bool { counters == nil && senders.isEmpty && mentioned.isEmpty }

        /// Adds a member's message, and returns the member's earlier pending messages.
        mutating func addMessage(of sender: UserID, count: Int, at seq: Seq) -> Sent? {
            let before = senders[sender]
            senders[sender] = Sent(count: (before?.count ?? 0) + count, lastSeq: seq)
            return before
        }
    }

    /// One sender's messages: how many of them count, and the last one.
    private struct Sent {
        var count = 0
        var lastSeq: Seq = 0
    }

    /// The position of a user's own stream, and whether it is still to be written.
    private struct Head {
        let seq: Seq
        let isPending: Bool
    }

    /// The pending state before the current operation changed it; nil for none.
    private enum Before {
        /// A message was added or changed. Without counters, nothing of the channel was pending.
        case message(ChannelID, ChannelCounters?, sender: UserID?, Sent?)
        case mention(ChannelID, UserID, NewestMention?)
        case head(UserID, Head?)

        /// Returns a channel's pending writes without this change.
        func undone(from pending: PendingWrites?, of channel: ChannelID) -> PendingWrites? {
            switch self {
            case .message(channel, let counters, let sender, let sent):
                guard var pending else { return nil }
                pending.counters = counters
                if let sender { pending.senders[sender] = sent }
                return pending.isEmpty ? nil : pending
            case .mention(channel, let user, let mention):
                guard var pending else { return nil }
                pending.mentioned[user] = mention
                return pending.isEmpty ? nil : pending
            default: return pending
            }
        }
    }

    private var known: [ChannelID: Known] = [:]
    private var pending: [ChannelID: PendingWrites] = [:]
    /// The positions of users' own streams: those that this transaction has locked, or has read where there is no other writer.
    private var heads: [UserID: Head] = [:]
    private var hasPendingHeads = false
    /// The current operation's changes here.
    private var added: [Before] = []
    /// Writes that were pending before the operation and were carried out during it, inside its savepoint.
    private var writtenInside: [ChannelID: PendingWrites] = [:]
    private var headsWrittenInside: [UserID: Head] = [:]
    fileprivate var isBypassing = false
    fileprivate var isKeeping = false
    let readsAhead: Bool

    /// - Parameter readsAhead: Whether a batch's channels are read at its beginning. For networked engines: all those statements take one round trip.
    public init(readsAhead: Bool = false) { self.readsAhead = readsAhead }

    // MARK: For engines

    /// Whether statements are running that touch neither heads nor memberships.
    public var isBypassed: Bool { isBypassing }

    /// Whether the current operation has changed something here.
    public var hasOperationWritten: Bool { !added.isEmpty }

    /// Begins an operation, which ``undoOperation(isRolledBack:)`` can undo.
    public func beginOperation() {
        if !added.isEmpty { added.removeAll(keepingCapacity: true) }
        if !writtenInside.isEmpty { writtenInside.removeAll(keepingCapacity: true) }
        if !headsWrittenInside.isEmpty { headsWrittenInside.removeAll(keepingCapacity: true) }
    }

    /// Undoes the operation's changes.
    ///
    /// - Parameter isRolledBack: Whether the database has rolled back the operation's writes, to its savepoint.
    public func undoOperation(isRolledBack: Bool) {
        guard isRolledBack || !added.isEmpty else { return }
        known.removeAll(keepingCapacity: true)
        for before in added.reversed() {
            switch before {
            case .message(let channel, _, _, _), .mention(let channel, _, _):
                pending[channel] = before.undone(from: pending[channel], of: channel)
            case .head(let user, let head): heads[user] = head
            }
        }
        if isRolledBack {
            pending.merge(writtenInside) { $1 }
            heads.merge(headsWrittenInside) { $1 }
        }
        // Locks that only the operation took are released, and its writes are gone.
        heads = heads.filter(\.value.isPending)
        hasPendingHeads = !heads.isEmpty
        beginOperation()
    }

    /// Returns the statements for the pending writes, in the order of the channels' ids.
    ///
    /// - Parameter isInside: Whether they are undone with the current operation.
    public func takePendingWrites(isInside: Bool) throws -> [SQL] {
        guard !pending.isEmpty || hasPendingHeads else { return [] }
        if isInside { keepWritten() }
        var statements: [SQL] = []
        statements.reserveCapacity(pending.count * 2 + 4)
        for (channel, pending) in pending.sorted(by: { $0.key < $1.key }) {
            if let counters = pending.counters { statements.append(try .movingStream(of: channel, to: counters)) }
            for (sender, sent) in pending.senders {
                statements.append(.sent(upTo: sent.lastSeq, count: sent.count, by: sender, in: channel))
            }
            for (user, mention) in pending.mentioned { statements.append(.mentioned(mention, user, in: channel)) }
        }
        pending.removeAll(keepingCapacity: true)
        if hasPendingHeads { statements += takePendingHeads() }
        return statements
    }

    private func takePendingHeads() -> [SQL] {
        let rows = heads.compactMap { user, head in head.isPending ? [user.column(), head.seq.column()] : nil }
        heads = heads.mapValues { Head(seq: $0.seq, isPending: false) }
        hasPendingHeads = false
        return rows.cutForStatements().map { .movingStreams(to: Array($0)) }
    }

    /// Keeps the earlier pending writes that are about to be carried out inside the operation's savepoint.
    private func keepWritten() {
        for (channel, pending) in pending where writtenInside[channel] == nil {
            writtenInside[channel] = added.reversed().reduce(pending as PendingWrites?) { $1.undone(from: $0, of: channel) }
        }
        for (user, head) in heads where head.isPending && headsWrittenInside[user] == nil {
            var before: Head? = head
            for case .head(user, let head) in added.reversed() { before = head }
            if let before, before.isPending { headsWrittenInside[user] = before }
        }
    }

    /// Has everything read again, since a statement may have changed it.
    public func forget() {
        guard !isKeeping else { return }
        known.removeAll(keepingCapacity: true)
        heads.removeAll(keepingCapacity: true)
    }

    // MARK: For rules

    /// Whether a sender's message with a client id was deleted for good; nil if the database has to be asked.
    func isPurged(_ clientId: ClientID, of sender: UserID, in channel: ChannelID) -> Bool? {
        known[channel]?.isPurged[sender]?[clientId]
    }

    /// Keeps which of the client ids asked about belong to messages that were deleted for good, in a known channel.
    func learn(purged ids: Set<ClientID>, among asked: Set<ClientID>, of sender: UserID, in channel: ChannelID) {
        for id in asked { known[channel]?.isPurged[sender, default: [:]][id] = ids.contains(id) }
    }

    /// The newest mention of a channel, if this transaction has written it; nil if it has to be read.
    func mention(of channel: ChannelID) -> WrittenChannelMention? { known[channel]?.mention }

    /// Keeps the newest mention of a known channel; nil to have it read again.
    func keep(_ mention: WrittenChannelMention?, of channel: ChannelID) { known[channel]?.mention = mention }

    /// Whether the rows of a channel differ from the database's.
    fileprivate func hasPendingWrites(_ channel: ChannelID) -> Bool { pending[channel] != nil }

    /// Whether a member's row differs from the database's.
    fileprivate func hasPendingWrites(_ user: UserID, in channel: ChannelID) -> Bool {
        pending[channel].map { $0.senders[user] != nil || $0.mentioned[user] != nil } ?? false
    }

    /// Whether messages of a channel were deleted for good; nil if the channel's common part has to be read.
    func hasPurges(_ channel: ChannelID) -> Bool? { known[channel].map { $0.access.purgedSeq > 0 } }

    /// A member's channel in its current state; nil if it has to be read.
    fileprivate func access(to channel: ChannelID, of user: UserID) -> ChannelAccess? {
        guard let known = known[channel], let member = known.members[user] else { return nil }
        var access = known.access
        access.member = member
        access.member?.row.channelSeq = access.counters.seq
        return access
    }

    /// Keeps a member's row of a known channel; nil to have it read again.
    fileprivate func keep(_ member: ChannelAccess.MemberRow?, of user: UserID, in channel: ChannelID) {
        known[channel]?.members[user] = member
    }

    /// Keeps a channel that was read. Only for members: for others it also matters whether they are invited.
    func learn(_ access: ChannelAccess, of user: UserID) {
        guard access.isMember, let member = access.member else { return }
        if known[access.channelId] == nil {
            var common = access
            common.member = nil
            known[access.channelId] = Known(common)
        }
        known[access.channelId]?.members[user] = member
    }

    fileprivate func addChange(in access: ChannelAccess) {
        let channel = access.channelId
        added.append(.message(channel, pending[channel]?.counters, sender: nil, nil))
        pending[channel, default: PendingWrites()].counters = access.counters
        known[channel]?.access.counters = access.counters
    }

    fileprivate func addMessage(of sender: UserID, count: Int, in access: ChannelAccess) {
        let channel = access.channelId
        let counters = pending[channel]?.counters
        pending[channel, default: PendingWrites()].counters = access.counters
        let sent =
            access.isMember
            ? pending[channel]?.addMessage(of: sender, count: count, at: access.counters.seq) ?? nil
            : pending[channel]?.senders[sender]
        added.append(.message(channel, counters, sender: sender, sent))
        known[channel]?.addMessage(of: sender, count: count, access.counters)
    }

    fileprivate func addMention(of member: ChannelAccess.MemberRow, _ user: UserID, in channel: ChannelID) {
        added.append(.mention(channel, user, pending[channel]?.mentioned[user]))
        pending[channel, default: PendingWrites()].mentioned[user] = NewestMention(of: member.row)
        keep(member, of: user, in: channel)
    }

    /// Takes the next seq of a user's own stream if its position is known; nil if it has to be read.
    func advanceHead(of user: UserID) -> Seq? {
        guard let seq = heads[user].map({ $0.seq + 1 }) else { return nil }
        moveHead(of: user, to: seq)
        return seq
    }

    /// Moves a user's own stream, whose head this transaction has locked. Written at the end of the batch, or before anything reads it.
    func moveHead(of user: UserID, to seq: Seq) {
        added.append(.head(user, heads.updateValue(Head(seq: seq, isPending: true), forKey: user)))
        hasPendingHeads = true
    }

    /// Keeps the position of a user's own stream as it was read, where there is no other writer.
    func learn(read head: Seq, of user: UserID) {
        if heads[user] == nil { learn(head: head, of: user) }
    }

    /// Keeps the position of a user's own stream that this transaction has locked and written.
    func learn(head seq: Seq, of user: UserID) { heads[user] = Head(seq: seq, isPending: false) }
}

/// A channel's newest valid mention.
struct WrittenChannelMention {
    let sender: UserID
    let seq: Seq
    /// The place of the newest earlier one by another sender, whether or not it still exists; 0 for none.
    let otherSeq: Seq

    /// Returns the place of the newest mention by another user, whether or not it still exists.
    func seq(byOthersThan user: UserID) -> Seq { sender == user ? otherSeq : seq }
}

/// A member's newest mention by name, and the position in their own stream that carries it.
struct NewestMention {
    let seq: Seq
    let message: MessageID?
    let userSeq: Seq

    init(of row: Membership) { (seq, message, userSeq) = (row.mentionSeq, row.mentionMessage, row.userSeq) }
}

extension Transaction {
    /// Runs statements that neither read nor write heads and memberships with pending writes.
    func bypassingBatchMemory<T>(_ body: () throws -> T) rethrows -> T {
        guard let batchMemory, !batchMemory.isBypassing else { return try body() }
        batchMemory.isBypassing = true
        defer { batchMemory.isBypassing = false }
        return try body()
    }

    /// Returns a channel as a member sees it, from memory or read by a body that reads nothing else that a new message changes.
    ///
    /// - Parameter readMember: Reads the row of one more member of a known channel; nil for non-members.
    func remembered(
        _ channel: ChannelID, of user: UserID, reading read: () throws -> ChannelAccess?,
        member readMember: (_ hasPurges: Bool) throws -> ChannelAccess.MemberRow?
    ) rethrows -> ChannelAccess? {
        guard let batchMemory else { return try read() }
        if let access = batchMemory.access(to: channel, of: user) { return access }
        if let hasPurges = batchMemory.hasPurges(channel), !batchMemory.hasPendingWrites(user, in: channel),
            let member = try bypassingBatchMemory({ try readMember(hasPurges) })
        {
            batchMemory.keep(member, of: user, in: channel)
            return batchMemory.access(to: channel, of: user)
        }
        let access = batchMemory.hasPendingWrites(channel) ? try read() : try bypassingBatchMemory(read)
        if let access { batchMemory.learn(access, of: user) }
        return access
    }

    /// Writes a member's own row, which is read again when it is next needed.
    func write(_ sql: SQL, toMember user: UserID, of channel: ChannelID) throws {
        guard let batchMemory else { return try perform(sql) }
        defer { batchMemory.keep(nil, of: user, in: channel) }
        guard batchMemory.hasPendingWrites(user, in: channel) else { return try bypassingBatchMemory { try perform(sql) } }
        batchMemory.isKeeping = true
        defer { batchMemory.isKeeping = false }
        try perform(sql)
    }

    /// Writes a member's newest mention, and the position in their own stream that carries it: once for all messages of the batch.
    ///
    /// - Parameter member: The member's whole row, including the mention.
    func writeMention(_ member: ChannelAccess.MemberRow, of user: UserID, in channel: ChannelID) throws {
        guard let batchMemory else { throw ImpossibleState("A transaction that only reads was given a mention.") }
        batchMemory.addMention(of: member, user, in: channel)
    }

    /// Counts a new message in its channel's head and its sender's membership, which are written once for all messages of the batch.
    ///
    /// - Parameters:
    ///   - count: 1, or 0 for a message that doesn't count as unread. For its sender it never does.
    ///   - access: The channel with the message.
    func addMessage(of sender: UserID, count: Int, in access: ChannelAccess) throws {
        guard let batchMemory else { throw ImpossibleState("A transaction that only reads was given a message.") }
        batchMemory.addMessage(of: sender, count: count, in: access)
    }

    /// Moves a channel's head for a changed message. The head is written once for the whole batch.
    ///
    /// - Parameter access: The channel after the change.
    func addChange(in access: ChannelAccess) throws {
        guard let batchMemory else { throw ImpossibleState("A transaction that only reads was given a change.") }
        batchMemory.addChange(in: access)
    }
}
