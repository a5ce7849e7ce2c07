import RoostAPI

/// One user's channels, kept between reads by an engine that can (``ReadCache``), with the values that totals and lists need
/// of each. These read all of a user's memberships: of thousands of channels, only a few have changed since the last time.
///
/// A row depends on the channel's head and on the user's own membership. The engine records changes of heads. The user's stream
/// tells which memberships have changed, as for a client that catches up: a row that changes either takes a seq in that stream,
/// or moves the channel's (sending counts one's own message as read).
///
/// A list is kept if it is long enough and is requested again. It is given up if too much changes in between: a statement over
/// all rows is then cheaper.

/// A channel with the values that its member counts and sorts by.
struct OwnChannel: Hashable, Sendable {
    let channel: ChannelID
    let unreadCount: Int64
    let listAt: Int64
    let lastActivity: Int64
    let states: States

    /// The states that queries filter by. Deleted channels aren't kept: few lists include them.
    struct States: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let empty = States(rawValue: 1)
        static let hiddenUntilNewMessage = States(rawValue: 2)
        static let archived = States(rawValue: 4)
        static let muted = States(rawValue: 8)
    }

    /// The same as `QueryChannels.isUnread`.
    var isUnread: Bool { unreadCount > 0 }

    fileprivate static let columns: SQL = """
        m.channel_id, \(Unread.count), h.list_at, h.last_activity,
        CASE WHEN h.message_count > 0 THEN 0 ELSE 1 END
        + CASE WHEN \(QueryChannels.hidesUntilNews) THEN 2 ELSE 0 END + CASE WHEN \(QueryChannels.isArchived) THEN 4 ELSE 0 END
        + CASE WHEN m.notifications_muted_until IS NULL THEN 0 ELSE 8 END
        """

    fileprivate init(reading row: inout RowReader) {
        channel = row.identifier()
        unreadCount = row.int64()
        listAt = row.int64()
        lastActivity = row.int64()
        states = States(rawValue: UInt8(truncatingIfNeeded: row.int64()))
    }
}

/// The kept state of a user.
private enum CachedOwnChannels: CachedValue {
    /// No list: it is read after this many more reads. `next` is the following wait, if the list then doesn't help.
    case waiting(readCount: Int, next: Int)
    case list(OwnChannelList)

    var sizeBytes: Int {
        switch self {
        case .waiting: 128
        case .list(let list): list.sizeBytes
        }
    }
}

private struct OwnChannelList: Sendable {
    /// The shortest list worth keeping.
    static let countMin = 100
    /// At most one row in this many may have changed for a list to be kept: finding a row by its id takes several times as long as
    /// reading it with all others.
    static let changedPart = 12
    /// The maximum number of reads before a list is tried again.
    static let waitMax = 64

    /// In the byte order of the ids.
    var rows: [OwnChannel]
    var marks: [ChangeMark]
    /// The position in the user's stream at which the memberships were read.
    var userSeq: Seq
    /// A commit since which every change of a row has been recorded.
    var commit: Int64
    /// How often it has helped, counted up to a few times.
    var useCount = 0
    var wait: Int
    private(set) var sizeBytes: Int

    init(_ rows: [OwnChannel], userSeq: Seq, commit: Int64, wait: Int) {
        self.rows = rows
        marks = rows.map { ChangeMark($0.channel) }
        (self.userSeq, self.commit, self.wait) = (userSeq, commit, wait)
        sizeBytes = rows.reduce(256) { $0 + Self.sizeBytes(of: $1.channel) }
    }

    /// The size of a channel's row.
    private static func sizeBytes(of channel: ChannelID) -> Int {
        let row = MemoryLayout<OwnChannel>.stride + MemoryLayout<ChangeMark>.stride
        // A text of more than 15 bytes is a separate allocation.
        return row + (channel.rawValue.utf8.count > 15 ? channel.rawValue.utf8.count + 48 : 0)
    }

    /// Puts a row in its place, or removes it.
    mutating func put(_ row: OwnChannel?, for channel: ChannelID) {
        let place = rows.place(of: channel)
        if let row {
            if place.isFound {
                rows[place.index] = row
            } else {
                rows.insert(row, at: place.index)
                marks.insert(ChangeMark(channel), at: place.index)
                sizeBytes += Self.sizeBytes(of: channel)
            }
        } else if place.isFound {
            rows.remove(at: place.index)
            marks.remove(at: place.index)
            sizeBytes -= Self.sizeBytes(of: channel)
        }
    }

    /// The state to keep if so much has changed that a statement over all rows costs less.
    var abandoned: CachedOwnChannels {
        let next = useCount > 1 ? 1 : min(wait * 2, Self.waitMax)
        return .waiting(readCount: next, next: next)
    }
}

extension [OwnChannel] {
    /// The index of a channel in the byte order of the ids, or the index where it would be.
    func place(of channel: ChannelID) -> (index: Int, isFound: Bool) {
        let id = channel.rawValue.utf8
        let index = partitioningIndex { !$0.channel.rawValue.utf8.lexicographicallyPrecedes(id) }
        return (index, index < count && self[index].channel.rawValue.utf8.elementsEqual(id))
    }
}

extension Transaction {
    /// Returns the channels that a user is a member of, without deleted ones, in the byte order of the ids, as of the snapshot;
    /// nil if a statement over all of them should read them.
    func cachedOwnChannels(of user: UserID) throws -> [OwnChannel]? {
        guard let cache = readCache else { return nil }
        let kept = cache.value(for: user) as? CachedOwnChannels
        switch kept {
        case .waiting(let readCount, let next)? where readCount > 1:
            cache.keep(CachedOwnChannels.waiting(readCount: readCount - 1, next: next), for: user)
            return nil
        case nil where !cache.isChecked:
            cache.keep(CachedOwnChannels.waiting(readCount: 1, next: 1), for: user)
            return nil
        default: break
        }
        // This begins the snapshot at the latest, before changes are requested.
        let userSeq = try streamHead(of: user)
        guard case .list(let list)? = kept else {
            let wait = if case .waiting(_, let next)? = kept { next } else { 1 }
            return try readList(of: user, at: userSeq, wait: wait, cache)
        }
        guard let rows = try refresh(list, of: user, at: userSeq, cache) else { return nil }
        if cache.isChecked, try ownChannels(of: user) != rows {
            throw ImpossibleState("The kept channels of \(user) differ from the snapshot's.")
        }
        return rows
    }

    /// Reads all of a user's channels, and keeps them.
    private func readList(of user: UserID, at userSeq: Seq, wait: Int, _ cache: any ReadCache) throws -> [OwnChannel] {
        let rows = try ownChannels(of: user)
        if rows.count >= OwnChannelList.countMin || cache.isChecked {
            let list = OwnChannelList(rows, userSeq: userSeq, commit: cache.commit, wait: wait)
            if cache.keep(CachedOwnChannels.list(list), for: user) { return rows }
        }
        cache.keep(CachedOwnChannels.waiting(readCount: OwnChannelList.waitMax, next: OwnChannelList.waitMax), for: user)
        return rows
    }

    /// Reads the rows of a list again that may have changed; nil if they are too many.
    private func refresh(
        _ kept: OwnChannelList, of user: UserID, at userSeq: Seq, _ cache: any ReadCache
    ) throws -> [OwnChannel]? {
        // Another read has kept a newer snapshot than this one.
        guard kept.userSeq <= userSeq else { return nil }
        var list = kept
        let max = cache.isChecked ? Int.max - 1 : list.rows.count / OwnChannelList.changedPart
        guard let changed = cache.changes(among: list.marks, after: min(list.commit, cache.commit), atMost: max) else {
            cache.keep(list.abandoned, for: user)
            return nil
        }
        var channels = changed.map { list.rows[$0].channel }
        if list.userSeq < userSeq {
            channels += try rows(
                "SELECT channel_id FROM members WHERE user_id = \(user) AND user_seq > \(list.userSeq) LIMIT \(max + 1)"
            ) { $0.identifier() }
            guard channels.count <= max else {
                cache.keep(list.abandoned, for: user)
                return nil
            }
        }
        for part in channels.map(\.rawValue).chunked(by: 512) {
            let found = try ownChannels(among: part, of: user)
            for channel in part.lazy.map(ChannelID.init(rawValue:)) {
                let place = found.place(of: channel)
                list.put(place.isFound ? found[place.index] : nil, for: channel)
            }
        }
        guard !channels.isEmpty || list.userSeq < userSeq || list.useCount < 2 else { return list.rows }
        (list.userSeq, list.commit) = (userSeq, cache.commit)
        list.useCount = min(list.useCount + 1, 2)
        cache.keep(CachedOwnChannels.list(list), for: user)
        return list.rows
    }

    private func ownChannels(of user: UserID) throws -> [OwnChannel] {
        let sql: SQL = """
            SELECT \(OwnChannel.columns) FROM members m CROSS JOIN channel_heads h
            WHERE m.user_id = \(user) AND m.state = 'member' AND m.is_channel_deleted = 0 AND h.channel_id = m.channel_id
                AND h.is_deleted = 0
            ORDER BY m.channel_id
            """
        return try rows(sql) { OwnChannel(reading: &$0) }
    }

    /// Returns those of the channels that the user is a member of.
    private func ownChannels(among channels: some Collection<String>, of user: UserID) throws -> [OwnChannel] {
        let sql: SQL = """
            SELECT \(OwnChannel.columns) FROM members m CROSS JOIN channel_heads h
            WHERE m.user_id = \(user) AND m.state = 'member' AND m.channel_id IN (\(list: channels)) AND h.channel_id = m.channel_id
                AND h.is_deleted = 0
            ORDER BY m.channel_id
            """
        return try rows(sql) { OwnChannel(reading: &$0) }
    }
}
