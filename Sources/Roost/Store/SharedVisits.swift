import Foundation
import GRDB
import RoostAPI

/// Writes of a store as they are made beside other chats of this process that have the same file, and visit the same channels of others (`Sync+Visits`).
///
/// A channel's position is that of one chat, its *visitor*, which alone moves it: it has written all changes up to there. Another chat that visits the channel
/// writes what comes too, and adds the messages that it has to those that are cached.
///
/// A visit takes the place of one that is behind it: of the visitor nobody knows whether it still follows, and without what happened between the two the list
/// would have a hole. The chat that had it is told so, as of any beginning (``OpenFiles``). So that two that follow at once don't do this to each other again
/// and again, one that has taken a visit over keeps it while it is heard of: what it lacks it is about to write.
struct SharedVisits: Sendable {
    fileprivate(set) var writes: [StoreWrite] = []
    /// The channels whose visit is another chat's, with the seq that the store has visited them from.
    fileprivate(set) var joined: [ChannelID: Seq] = [:]
    /// The channels whose visit was another open chat's.
    fileprivate(set) var taken: Set<ChannelID> = []
}

extension Database {
    /// Whose a channel's position is, from where a store is that writes about it.
    private enum Holder {
        /// The store's own, that of a chat that is gone, or nobody's.
        case free
        /// The channel is known to be one of the user's.
        case user
        /// Another chat's that is open, at a cursor.
        case other(Int64, Seq)
    }

    private func holder(of channel: ChannelID, beside store: Int64, in url: URL?) throws -> Holder {
        let row: (visitor: Int64?, cursor: Seq)? = try first(
            "SELECT visitor, cursor FROM positions WHERE channel_id = ?", [channel.rawValue]
        ) { (try $0.value(), try $0.value()) }
        guard let row else { return .free }
        guard let visitor = row.visitor else { return .user }
        return visitor == store || !OpenFiles.isOpen(visitor, in: url) ? .free : .other(visitor, row.cursor)
    }

    /// Returns writes as they are to be made beside the visits of others.
    ///
    /// - Throws: ``OpenFiles/BegunAfresh`` if a chat doesn't follow any more from which this one waits for what is missing; `DatabaseError`.
    func besideOthers(_ writes: [StoreWrite], of store: Int64, in url: URL?, _ known: OpenFiles.Known) throws -> SharedVisits {
        guard writes.contains(where: { $0.isOfVisit }) else { return SharedVisits(writes: writes) }
        var shared = SharedVisits()
        // Of these the file says how they were before the writes.
        var isErased = false
        var settled: Set<ChannelID> = []
        for write in writes {
            switch write {
            case .erase: isErased = true
            case .position(let channel, _), .leave(let channel): settled.insert(channel)
            default: break
            }
            guard write.isOfVisit, let channel = write.channel, !isErased, !settled.contains(channel) else {
                shared.writes.append(write)
                continue
            }
            let holder = try holder(of: channel, beside: store, in: url)
            switch (write, holder) {
            case (.visit, .free), (.endVisit, .free):
                settled.insert(channel)
                shared.writes.append(write)
            case (.visit(_, let position), .other(let other, let cursor)):
                if cursor < position.cursor, !OpenFiles.keepsVisit(other, of: channel, in: url) {
                    settled.insert(channel)
                    shared.taken.insert(channel)
                    shared.writes.append(write)
                } else {
                    shared.joined[channel] = position.cursor
                    if position.windowStart <= position.cursor { shared.writes.append(.page(channel, position.fetched)) }
                }
            case (.advance(_, let position), .other(let other, let cursor)):
                let start = shared.joined[channel] ?? known.joined[channel] ?? 0
                guard cursor >= start || OpenFiles.keepsVisit(other, of: channel, in: url) else { throw OpenFiles.BegunAfresh() }
                shared.writes.append(.page(channel, position.fetched))
            case (.visit, .user), (.endVisit, _): break
            default: shared.writes.append(write)
            }
        }
        return shared
    }

    /// Returns writes with the end of each visit of a store that isn't to be kept, in place of ``StoreWrite/keepVisits(_:)``: other chats of the same files have to
    /// know of each.
    func endingVisits(_ writes: [StoreWrite], _ store: Int64) throws -> [StoreWrite] {
        guard writes.contains(where: { if case .keepVisits = $0 { true } else { false } }) else { return writes }
        let visited: [ChannelID] = try values("SELECT channel_id FROM positions WHERE visitor = ? ORDER BY channel_id", [store])
        return writes.flatMap { write -> [StoreWrite] in
            guard case .keepVisits(let kept) = write else { return [write] }
            return visited.filter { !kept.contains($0) }.map { .endVisit($0) }
        }
    }

    /// Forgets what was followed only as long as it was watched, by whoever had the file before.
    func endVisits(as user: UserID, _ kinds: CachedRowKinds) throws {
        let channels: [ChannelID] = try values("SELECT channel_id FROM positions WHERE visitor IS NOT NULL")
        for channel in channels { try apply(.endVisit(channel), as: user, kinds) }
    }
}

extension StoreWrite {
    /// Whether it begins, moves or ends a visit.
    fileprivate var isOfVisit: Bool {
        switch self {
        case .visit, .endVisit: true
        case .advance(_, let position): position.isVisit
        default: false
        }
    }
}

extension Position {
    /// The messages that whoever has the position has written. Behind a hole that is known of the newest one alone.
    fileprivate var fetched: ClosedRange<Seq> { (hasHole ? cursor : min(windowStart, cursor))...cursor }
}
