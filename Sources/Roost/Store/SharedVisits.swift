import Foundation
import GRDB
import RoostAPI

/// Writes of a store, adjusted to other chats of this process that have the same file and visit the same channels (`Sync+Visits`).
///
/// A channel's position belongs to one chat, its *visitor*, which alone moves it: it has written all changes up to there. Another chat that visits
/// the channel also writes what arrives, and adds its messages to those that are cached.
///
/// A visit replaces one that is behind it: the other visitor may no longer follow the channel, and without the events between the two the list would
/// have a gap. The chat that held the visit learns of this as of any restart (``OpenFiles``). To keep two chats that follow at once from replacing
/// each other again and again, a chat that has taken a visit over keeps it while it is active: it is about to write what it lacks.
struct SharedVisits: Sendable {
    fileprivate(set) var writes: [StoreWrite] = []
    /// The channels whose visit is another chat's, with the seq from which the store has visited them.
    fileprivate(set) var joined: [ChannelID: Seq] = [:]
    /// The channels whose visit was taken from another open chat.
    fileprivate(set) var taken: Set<ChannelID> = []
}

extension Database {
    /// The holder of a channel's position, as seen by a store that writes about the channel.
    private enum Holder {
        /// The store itself, a chat that is gone, or none.
        case free
        /// The channel is known to be one of the user's own.
        case user
        /// Another open chat, at a cursor.
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

    /// Returns the writes as they are to be made beside the visits of other chats.
    ///
    /// - Throws: ``OpenFiles/RestartedElsewhere`` if this chat waits for missing events from a chat that no longer follows the channel; `DatabaseError`.
    func besideOthers(_ writes: [StoreWrite], of store: Int64, in url: URL?, _ known: OpenFiles.Known) throws -> SharedVisits {
        guard writes.contains(where: { $0.isOfVisit }) else { return SharedVisits(writes: writes) }
        var shared = SharedVisits()
        // For these, the file has the state before the writes.
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
                guard cursor >= start || OpenFiles.keepsVisit(other, of: channel, in: url) else {
                    throw OpenFiles.RestartedElsewhere()
                }
                shared.writes.append(.page(channel, position.fetched))
            case (.visit, .user), (.endVisit, _): break
            default: shared.writes.append(write)
            }
        }
        return shared
    }

    /// Returns the writes with ``StoreWrite/keepVisits(_:)`` replaced by the end of each visit of the store that isn't kept: other chats of the same
    /// files must know of each.
    func endingVisits(_ writes: [StoreWrite], _ store: Int64) throws -> [StoreWrite] {
        guard writes.contains(where: { if case .keepVisits = $0 { true } else { false } }) else { return writes }
        let visited: [ChannelID] = try values("SELECT channel_id FROM positions WHERE visitor = ? ORDER BY channel_id", [store])
        return writes.flatMap { write -> [StoreWrite] in
            guard case .keepVisits(let kept) = write else { return [write] }
            return visited.filter { !kept.contains($0) }.map { .endVisit($0) }
        }
    }

    /// Forgets channels that earlier users of the file followed only while they watched them.
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
    /// The messages that the holder of the position has written. After a hole only the newest one is known.
    fileprivate var fetched: ClosedRange<Seq> { (hasHole ? cursor : min(windowStart, cursor))...cursor }
}
