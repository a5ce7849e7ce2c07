public import RoostAPI

/// What each user sees of messages, counted independently from operations and their answers.
///
/// It is written from docs/protocol.md, and shares nothing with the product's counting: from an answer it takes only what can't be known
/// before, such as ids and times.
public struct MessageRecount: Sendable {
    /// What a member sees of a channel, besides the page of messages.
    public struct Standing: Hashable, Sendable {
        public var seq: Seq
        public var memberCount: Int
        public var messageCount: Int
        public var ordinal: Int
        public var unreadCount: Int
        public var hasMention: Bool
        public var readSeq: Seq
        public var historyFloor: Seq
        public var hiddenState: HiddenState
        /// The newest unread mention by name.
        public var mention: MessageID?
        public var lastMessage: Message?
    }

    /// A user in a channel. It is kept after leaving, because of the floor.
    private struct Place {
        var isMember = false
        var readSeq: Seq = 0
        var floor: Seq = 0
        /// The part of it that was set by joining, which others know of.
        var joinedFloor: Seq = 0
        var hiddenState = HiddenState.unhidden
        var isMuted = false
        /// Whether a message arrived since it was hidden.
        var hasNews = false
        var unreadCount = 0

        /// A message brings back a channel hidden until then, but not while it is muted.
        mutating func comeBack() {
            if hiddenState == .hiddenAllowAutoUnhide, hasNews, !isMuted { hiddenState = .unhidden }
        }
    }

    /// A message, and the seqs since which it mentions users.
    private struct Posted {
        var message: Message
        /// Whether it is unread for users who haven't read it. That never changes, and is looked up for every message after every step.
        let isNews: Bool
        var namedSince: [UserID: Seq] = [:]
        var channelSince: Seq?
        /// Its state before it was deleted, to be restored.
        var before: Message?
        /// The users who have deleted it for themselves.
        var goneFor: Set<UserID> = []

        init(_ message: Message) {
            self.message = message
            isNews = !message.isSilent && message.kind != .system
        }

        /// The message as a user sees it.
        func message(for user: UserID) -> Message {
            guard goneFor.contains(user) else { return message }
            var shown = message
            shown.content = Self.emptied(message)
            shown.isDeletedForMe = true
            return shown.comparable
        }

        /// Its place stays, with what never changes.
        static func emptied(_ message: Message) -> MessageContent {
            MessageContent(text: "", kind: message.kind, parentId: message.parentId, isSilent: message.isSilent)
        }

        func isVisible(at place: Place) -> Bool { message.seq > place.floor }

        func isUnread(for user: UserID, at place: Place) -> Bool {
            isNews && message.seq > place.readSeq && isVisible(at: place) && message.sender != user
        }

        /// Reading up to the change that made a mention ends it.
        func mentions(_ user: UserID, at place: Place, since: Seq?) -> Bool {
            guard let since, since > place.readSeq else { return false }
            return isVisible(at: place) && message.sender != user && !goneFor.contains(user)
        }
    }

    private struct Room {
        /// Whether non-members may read.
        var isOpen: Bool
        /// Whether the server announces joins and leaves in it.
        var announces: Bool
        var seq: Seq = 1
        /// The number of messages ever sent that are news.
        var ordinal = 0
        var places: [UserID: Place] = [:]
        /// In the order of their seqs, without those deleted for good.
        var posted: [Posted] = []

        /// Takes the next seq.
        mutating func advance() -> Seq {
            seq += 1
            return seq
        }

        /// The newest messages are looked up most.
        func index(of message: MessageID) -> Int? { posted.lastIndex { $0.message.messageId == message } }
    }

    private var rooms: [ChannelID: Room] = [:]

    public init() {}

    // MARK: Inspection

    public func isMember(_ user: UserID, of channel: ChannelID) -> Bool { rooms[channel]?.places[user]?.isMember ?? false }

    public func announces(_ channel: ChannelID) -> Bool { rooms[channel]?.announces ?? false }

    /// The channel's last seq.
    public func seq(of channel: ChannelID) -> Seq { rooms[channel]?.seq ?? 0 }

    /// All messages of a channel that weren't deleted for good.
    public func messages(of channel: ChannelID) -> [Message] { rooms[channel]?.posted.map(\.message) ?? [] }

    /// The messages that a user may see, oldest first; nil if they may not read the channel.
    public func messages(of channel: ChannelID, visibleTo user: UserID) -> [Message]? {
        guard let room = rooms[channel] else { return nil }
        let place = room.places[user] ?? Place()
        // The floor is a member's: in an open channel every non-member sees everything.
        guard place.isMember else { return room.isOpen ? room.posted.map { $0.message(for: user) } : nil }
        return room.posted.filter { $0.isVisible(at: place) }.map { $0.message(for: user) }
    }

    /// Returns nil for non-members.
    public func standing(of user: UserID, in channel: ChannelID) -> Standing? {
        guard let room = rooms[channel], let place = room.places[user], place.isMember else { return nil }
        let named = room.posted.filter { $0.mentions(user, at: place, since: $0.namedSince[user]) }
        let mentionsChannel = room.posted.contains { $0.mentions(user, at: place, since: $0.channelSince) }
        return Standing(
            seq: room.seq, memberCount: room.places.values.count { $0.isMember }, messageCount: room.posted.count,
            ordinal: room.ordinal, unreadCount: place.unreadCount, hasMention: !named.isEmpty || mentionsChannel,
            readSeq: place.readSeq, historyFloor: place.floor, hiddenState: place.hiddenState,
            mention: named.max { ($0.namedSince[user] ?? 0) < ($1.namedSince[user] ?? 0) }?.message.messageId,
            lastMessage: room.posted.last { $0.isVisible(at: place) }?.message(for: user))
    }

    public func total(of user: UserID) -> TotalUnread {
        let counted = rooms.values.compactMap { $0.places[user] }.filter { $0.isMember && !$0.isMuted && $0.unreadCount > 0 }
        let counts = counted.map(\.unreadCount)
        return TotalUnread(unreadCount: counts.reduce(0, +), unreadChannelCount: counts.count)
    }

    /// What a member hasn't read of a channel; nil for non-members.
    public func unread(of user: UserID, in channel: ChannelID) -> UnreadCount? {
        standing(of: user, in: channel).map {
            UnreadCount(channelId: channel, unreadCount: $0.unreadCount, readSeq: $0.readSeq, hasMention: $0.hasMention)
        }
    }

    /// Whether an answer to a user shows a message as it is, and names those of the mentionees whom it doesn't mention.
    public func holds(_ answer: Message, for user: UserID, naming mentionees: [Mentionee]? = nil) -> Bool {
        var message = answer.comparable
        message.droppedMentions = nil
        guard rooms[message.channelId]?.posted.contains(where: { $0.message(for: user) == message }) ?? false else { return false }
        let mentioned = Self.named(in: message.mentionees)
        return answer.droppedMentions ?? [] == Self.named(in: mentionees).filter { !mentioned.contains($0) }
    }

    /// The named users, each once.
    private static func named(in mentionees: [Mentionee]?) -> [UserID] {
        var users: [UserID] = []
        for user in mentionees?.compactMap(\.users).joined().map(\.self) ?? [] where !users.contains(user) { users.append(user) }
        return users
    }

    /// Whether an answer shows a user's membership as it is.
    public func holds(_ answer: Membership, of user: UserID) -> Bool {
        guard let standing = standing(of: user, in: answer.channelId) else { return answer.state == .none }
        let shown = (answer.readSeq, answer.historyFloor, answer.readCount)
        return answer.state == .member
            && shown == (standing.readSeq, standing.historyFloor, standing.ordinal - standing.unreadCount)
    }

    // MARK: Messages

    public mutating func created(_ channel: ChannelID, isOpen: Bool, announces: Bool, members: [UserID]) {
        let places = members.map { ($0, Place(isMember: true, readSeq: 1)) }
        rooms[channel] = Room(isOpen: isOpen, announces: announces, places: Dictionary(uniqueKeysWithValues: places))
    }

    /// The server has announced that users joined or left. The id and time of that message can't be known before.
    ///
    /// - Returns: Whether it names the actor and the users.
    public mutating func announced(_ message: Message, _ kind: SystemEvent.Kind, _ users: [UserID], by actor: UserID) -> Bool {
        let event = message.content.systemEvent
        let isAtItsPlace = message.seq == seq(of: message.channelId) + 1 && message.sender == actor
        let isExpected = event?.kind == kind && event?.userCount == users.count && Set(event?.users ?? []) == Set(users)
        // The text names three of them.
        let names = event?.users.prefix(3).allSatisfy { message.text.contains($0.rawValue) } ?? false
        sent(message.content, answer: message)
        return isAtItsPlace && isExpected && names
    }

    public mutating func sent(_ content: MessageContent, answer: Message) {
        change(answer.channelId) { room in
            let seq = room.advance()
            var message = Message(
                messageId: answer.messageId, channelId: answer.channelId, seq: seq, changeSeq: seq, sender: answer.sender,
                clientId: answer.clientId, content: content, createdAt: answer.createdAt)
            message.content.metaArrays = content.metaArrays?.mapValues(Self.sorted)
            var posted = Posted(message)
            Self.mention(content.mentionees, in: &posted, of: room)
            room.posted.append(posted)
            guard posted.isNews else { return }
            room.ordinal += 1
            for user in room.places.keys {
                room.places[user]?.hasNews = true
                room.places[user]?.comeBack()
            }
        }
    }

    public mutating func edited(_ edit: EditMessage, answer: Message) {
        change(edit.message, in: edit.channel) { posted, room in
            if let text = edit.text { posted.message.text = text }
            if let mentionees = edit.mentionees { Self.mention(mentionees, in: &posted, of: room, at: room.seq + 1) }
        } afterwards: {
            $0.editedAt = answer.editedAt
        }
    }

    public mutating func updated(_ update: UpdateMetaArrays) {
        change(update.message, in: update.channel) { posted, _ in
            var lists = posted.message.metaArrays ?? [:]
            for name in update.remove ?? [] { lists.removeValue(forKey: name) }
            for name in update.create ?? [] where lists[name] == nil { lists[name] = [] }
            for (name, values) in update.add ?? [:] { lists[name]? += values }
            for (name, values) in update.removeValues ?? [:] { lists[name]?.removeAll { values.contains($0) } }
            posted.message.metaArrays = lists.isEmpty ? nil : lists.mapValues(Self.sorted)
        }
    }

    public mutating func deleted(answer: Message) {
        change(answer.messageId, in: answer.channelId) { posted, _ in
            let message = posted.message
            guard message.deletedAt == nil else { return }
            posted.before = message
            posted.message.content = Posted.emptied(message)
            posted.message.deletedAt = answer.deletedAt
            (posted.namedSince, posted.channelSince) = ([:], nil)
        }
    }

    /// It is as before the deletion, and from now on mentions those who are still members.
    ///
    /// - Returns: Whom it mentioned when it was deleted; nil for a message that isn't deleted.
    public mutating func undeleted(_ message: MessageID, in channel: ChannelID) -> [Mentionee]? {
        var mentionees: [Mentionee]?
        change(message, in: channel) { posted, room in
            guard let before = posted.before, posted.message.deletedAt != nil else { return }
            mentionees = before.mentionees
            posted.message.content = before.content
            (posted.message.editedAt, posted.message.deletedAt) = (before.editedAt, nil)
            Self.mention(before.mentionees, in: &posted, of: room, at: room.seq + 1)
        }
        return mentionees
    }

    /// A user has deleted messages for themselves. The channel's stream doesn't change.
    public mutating func deletedForOneself(_ answers: [Message], by user: UserID) {
        for answer in answers {
            guard let index = rooms[answer.channelId]?.index(of: answer.messageId) else { continue }
            rooms[answer.channelId]?.posted[index].goneFor.insert(user)
        }
    }

    public mutating func purged(_ message: MessageID, in channel: ChannelID) {
        change(channel) { room in
            guard let index = room.index(of: message) else { return }
            room.posted.remove(at: index)
            room.seq += 1
        }
    }

    // MARK: Members

    public mutating func marked(_ mark: MarkRead, by user: UserID) {
        change(mark.channel) { room in
            let seq = min(mark.seq ?? room.seq, room.seq)
            let before = room.places[user]?.readSeq ?? 0
            room.places[user]?.readSeq = max(before, seq)
        }
    }

    public mutating func unmarked(_ mark: MarkUnread, by user: UserID) {
        change(mark.channel) { room in
            guard let place = room.places[user] else { return }
            room.places[user]?.readSeq = min(place.readSeq, max(mark.seq - 1, place.floor))
        }
    }

    public mutating func hid(_ hide: HideChannel, by user: UserID) {
        change(hide.channel) { room in
            room.places[user]?.hasNews = false
            room.places[user]?.hiddenState = hide.allowAutoUnhide == false ? .hiddenPreventAutoUnhide : .hiddenAllowAutoUnhide
        }
        if hide.hidePreviousMessages == true { concealed(hide.channel, from: user) }
    }

    public mutating func unhid(_ channel: ChannelID, by user: UserID) {
        change(channel) { $0.places[user]?.hiddenState = .unhidden }
    }

    public mutating func muted(_ channel: ChannelID, by user: UserID, _ isMuted: Bool) {
        change(channel) { room in
            room.places[user]?.isMuted = isMuted
            room.places[user]?.comeBack()
        }
    }

    /// The messages so far, or those of them up to a seq, are concealed from a member, and count as read.
    public mutating func concealed(_ channel: ChannelID, upTo seq: Seq? = nil, from user: UserID) {
        change(channel) { room in
            guard let place = room.places[user] else { return }
            let seq = min(seq ?? room.seq, room.seq)
            room.places[user]?.floor = max(place.floor, seq)
            room.places[user]?.readSeq = max(place.readSeq, seq)
        }
    }

    /// Non-members among the users have joined, in one change.
    ///
    /// - Returns: The new members.
    @discardableResult
    public mutating func joined(_ users: [UserID], _ channel: ChannelID, hidesHistory: Bool = false) -> [UserID] {
        let newcomers = users.filter { !isMember($0, of: channel) }
        change(channel) { room in
            guard !newcomers.isEmpty else { return }
            let last = room.seq
            let seq = room.advance()
            for user in newcomers {
                let (before, hidden) = (room.places[user] ?? Place(), hidesHistory ? last : 0)
                room.places[user] = Place(
                    isMember: true, readSeq: seq, floor: max(before.floor, hidden), joinedFloor: max(before.joinedFloor, hidden))
            }
        }
        return newcomers
    }

    /// The members among the users have left, in one change.
    ///
    /// - Returns: Those members.
    @discardableResult
    public mutating func left(_ users: [UserID], _ channel: ChannelID) -> [UserID] {
        let leavers = users.filter { isMember($0, of: channel) }
        change(channel) { room in
            guard !leavers.isEmpty else { return }
            room.seq += 1
            for user in leavers { room.places[user]?.isMember = false }
        }
        return leavers
    }

    // MARK: Parts

    /// Changes a channel, and counts its members' unread messages.
    private mutating func change(_ channel: ChannelID, _ body: (inout Room) -> Void) {
        guard var room = rooms[channel] else { return }
        body(&room)
        for (user, place) in room.places {
            room.places[user]?.unreadCount = room.posted.count { $0.isUnread(for: user, at: place) }
        }
        rooms[channel] = room
    }

    /// Changes a message. If it ends up the same, it takes no seq.
    private mutating func change(
        _ message: MessageID, in channel: ChannelID, _ body: (inout Posted, Room) -> Void,
        afterwards: (inout Message) -> Void = { _ in }
    ) {
        change(channel) { room in
            guard let index = room.index(of: message) else { return }
            var posted = room.posted[index]
            body(&posted, room)
            guard posted.message != room.posted[index].message else { return }
            posted.message.changeSeq = room.advance()
            afterwards(&posted.message)
            room.posted[index] = posted
        }
    }

    /// Sets whom a message mentions from a seq on, or from an earlier one for existing mentions. Non-members are left out, and members from
    /// whom it was hidden when they joined.
    private static func mention(_ mentionees: [Mentionee]?, in posted: inout Posted, of room: Room, at seq: Seq? = nil) {
        let seq = seq ?? posted.message.seq
        var names: [UserID] = []
        var isOfChannel = false
        for entry in mentionees ?? [] {
            if entry.type == .channel { isOfChannel = true }
            for user in entry.users ?? [] where !names.contains(user) {
                if let place = room.places[user], place.isMember, posted.message.seq > place.joinedFloor { names.append(user) }
            }
        }
        let stored = (names.isEmpty ? [] : [Mentionee.users(names)]) + (isOfChannel ? [.channel] : [])
        posted.message.mentionees = stored.isEmpty ? nil : stored
        let before = posted.namedSince
        posted.namedSince = Dictionary(uniqueKeysWithValues: names.map { ($0, before[$0] ?? seq) })
        posted.channelSince = isOfChannel ? posted.channelSince ?? seq : nil
    }

    private static func sorted(_ values: [String]) -> [String] {
        Set(values).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}

extension MessageRecount.Standing {
    /// What the server or the SDK shows of a channel; nil for non-members.
    public init?(showing view: ChannelView) {
        guard let membership = view.membership, membership.state == .member else { return nil }
        let counters = view.channel.counters
        self.init(
            seq: counters.seq, memberCount: counters.memberCount, messageCount: counters.messageCount, ordinal: counters.ordinal,
            unreadCount: view.unreadCount, hasMention: view.hasMention, readSeq: membership.readSeq,
            historyFloor: membership.historyFloor, hiddenState: view.hiddenState,
            mention: membership.mentionSeq > membership.readSeq ? membership.mentionMessage : nil,
            lastMessage: view.lastMessage?.comparable)
    }
}

extension Message {
    /// The message without the time at which the user has deleted it for themselves: of one that was deleted for all before, no user gets it.
    public var comparable: Message {
        guard isDeletedForMe else { return self }
        var message = self
        message.deletedAt = nil
        return message
    }
}
