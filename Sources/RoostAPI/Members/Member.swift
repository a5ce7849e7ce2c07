/// A user's membership in one channel, as every other member sees it.
public struct Member: Codable, Hashable, Sendable {
    /// The user.
    public var userId: UserID
    /// The role in the channel.
    public var role: ChannelRole
    /// Whether the user is currently a member.
    public var state: MembershipState
    /// When the user last became a member.
    public var joinedAt: Timestamp
    /// The channel's seq at which the current membership began. It orders members by when they joined, which timestamps can't.
    public var joinedSeq: Seq
    /// The seq of the newest change of this row in the channel's stream.
    public var changeSeq: Seq

    // derived: init
    /// Creates a value with these fields.
    public init(userId: UserID, role: ChannelRole, state: MembershipState, joinedAt: Timestamp, joinedSeq: Seq, changeSeq: Seq) {
        self.userId = userId
        self.role = role
        self.state = state
        self.joinedAt = joinedAt
        self.joinedSeq = joinedSeq
        self.changeSeq = changeSeq
    }
}

extension Member: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("role", role)
        json.member("state", state)
        json.member("joinedAt", joinedAt)
        json.member("joinedSeq", joinedSeq)
        json.member("changeSeq", changeSeq)
        json.endObject()
    }
}

extension Member: PlainReadable {
    // derived: init(plainly:)
    package init?(plainly json: inout PlainJSON) {
        var (userId, role, state, joinedAt, joinedSeq, changeSeq): (UserID?, ChannelRole?, MembershipState?, Timestamp?, Seq?, Seq?)
        let isPlain = json.members { key, json in
            switch key {
            case "userId": json.read(into: &userId)
            case "role": json.read(into: &role)
            case "state": json.read(into: &state)
            case "joinedAt": json.read(into: &joinedAt)
            case "joinedSeq": json.read(into: &joinedSeq)
            case "changeSeq": json.read(into: &changeSeq)
            default: json.pass() != nil
            }
        }
        guard isPlain, let userId, let role, let state, let joinedAt, let joinedSeq, let changeSeq else { return nil }
        self.init(userId: userId, role: role, state: state, joinedAt: joinedAt, joinedSeq: joinedSeq, changeSeq: changeSeq)
    }
}

/// A user's state in a channel (ledger §8.3). An invitation is a separate row: see ``Invitation``.
public enum MembershipState: OpenWireEnumeration {
    /// A member.
    case member
    /// A former member. Such rows are kept to inform clients that were offline.
    case none
    /// A state unknown to this version. The membership hasn't ended, but doesn't count as that of a member here.
    case unknown(String)

    public static let allCases: [MembershipState] = [.member, .none]

    public var rawValue: String {
        switch self {
        case .member: "member"
        case .none: "none"
        case .unknown(let name): name
        }
    }
}

/// The caller's own membership in one channel, with private fields: how far they have read, whether they hid the channel.
public struct Membership: Hashable, Sendable {
    /// The channel.
    public var channelId: ChannelID
    /// The role in the channel.
    public var role: ChannelRole
    /// Whether the user is currently a member.
    public var state: MembershipState
    /// When the membership began.
    public var joinedAt: Timestamp
    /// The channel's seq at which the current membership began. A client whose position is before this seq must fetch the channel again.
    public var joinedSeq: Seq
    /// The channel's seq up to which the caller has read.
    public var readSeq: Seq
    /// The number of counting messages read by the caller: those up to `readSeq`, and later ones that are the caller's own or permanently deleted.
    public var readCount: Int
    /// When the caller last marked something as read.
    public var lastReadAt: Timestamp?
    /// Messages up to this seq are hidden from the caller: sent before joining with history hidden, or concealed by hiding (SB-14, SB-26).
    public var historyFloor: Seq = 0
    /// The state that the caller set. ``Membership/visibility(in:)`` says whether the channel is hidden now.
    public var hiddenState: HiddenState = .unhidden
    /// The channel's `ordinal` when it was hidden: a later counting message brings it back, if allowed.
    public var hiddenOrdinal: Int = 0
    /// The channel's seq at which a message most recently came to mention the caller by name, by being sent or edited; 0 for none.
    /// `Unread.hasMention` says whether it is unread.
    public var mentionSeq: Seq = 0  // wire: default is absent
    /// That message.
    public var mentionMessage: MessageID?
    /// When the caller's mute in the channel ends.
    public var mutedUntil: Timestamp?
    /// When the caller's ban from the channel ends (AM-31).
    public var bannedUntil: Timestamp?
    /// When the caller's own muting of the channel ends; absent if they haven't muted it. The server removes it once the time is over,
    /// possibly a moment later: until then the channel counts as muted, whatever a clock says.
    public var notificationsMutedUntil: Timestamp?
    /// The channel's seq at which this row was valid. `readCount` includes the caller's own messages up to it, so the channel's and the
    /// user's events may arrive in either order.
    public var channelSeq: Seq
    /// The seq of this row's newest change in the caller's own stream: of two versions the higher one is newer.
    public var userSeq: Seq

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channelId: ChannelID, role: ChannelRole, state: MembershipState, joinedAt: Timestamp, joinedSeq: Seq, readSeq: Seq,
        readCount: Int, lastReadAt: Timestamp? = nil, historyFloor: Seq = 0, hiddenState: HiddenState = .unhidden,
        hiddenOrdinal: Int = 0, mentionSeq: Seq = 0, mentionMessage: MessageID? = nil, mutedUntil: Timestamp? = nil,
        bannedUntil: Timestamp? = nil, notificationsMutedUntil: Timestamp? = nil, channelSeq: Seq, userSeq: Seq
    ) {
        self.channelId = channelId
        self.role = role
        self.state = state
        self.joinedAt = joinedAt
        self.joinedSeq = joinedSeq
        self.readSeq = readSeq
        self.readCount = readCount
        self.lastReadAt = lastReadAt
        self.historyFloor = historyFloor
        self.hiddenState = hiddenState
        self.hiddenOrdinal = hiddenOrdinal
        self.mentionSeq = mentionSeq
        self.mentionMessage = mentionMessage
        self.mutedUntil = mutedUntil
        self.bannedUntil = bannedUntil
        self.notificationsMutedUntil = notificationsMutedUntil
        self.channelSeq = channelSeq
        self.userSeq = userSeq
    }

    /// Returns whether the channel is hidden at these counters: a newer message brings back a channel hidden until the next message
    /// (SB-27), but not while it is muted (D-32).
    public func visibility(in counters: ChannelCounters) -> HiddenState {
        let comesBack = hiddenState == .hiddenAllowAutoUnhide && counters.ordinal > hiddenOrdinal && !isNotificationsMuted
        return comesBack ? .unhidden : hiddenState
    }

    /// Whether the caller has muted the channel for themselves (D-29): it doesn't count in their total and badge.
    public var isNotificationsMuted: Bool { notificationsMutedUntil != nil }
}

extension Membership: Codable {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channelId, role, state, joinedAt, joinedSeq, readSeq, readCount, lastReadAt, historyFloor, hiddenState, hiddenOrdinal
        case mentionSeq, mentionMessage, mutedUntil, bannedUntil, notificationsMutedUntil, channelSeq, userSeq
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channelId, forKey: .channelId)
        try container.encode(role, forKey: .role)
        try container.encode(state, forKey: .state)
        try container.encode(joinedAt, forKey: .joinedAt)
        try container.encode(joinedSeq, forKey: .joinedSeq)
        try container.encode(readSeq, forKey: .readSeq)
        try container.encode(readCount, forKey: .readCount)
        try container.encodeIfPresent(lastReadAt, forKey: .lastReadAt)
        try container.encode(historyFloor, forKey: .historyFloor)
        try container.encode(hiddenState, forKey: .hiddenState)
        try container.encode(hiddenOrdinal, forKey: .hiddenOrdinal)
        if mentionSeq != 0 { try container.encode(mentionSeq, forKey: .mentionSeq) }
        try container.encodeIfPresent(mentionMessage, forKey: .mentionMessage)
        try container.encodeIfPresent(mutedUntil, forKey: .mutedUntil)
        try container.encodeIfPresent(bannedUntil, forKey: .bannedUntil)
        try container.encodeIfPresent(notificationsMutedUntil, forKey: .notificationsMutedUntil)
        try container.encode(channelSeq, forKey: .channelSeq)
        try container.encode(userSeq, forKey: .userSeq)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channelId = try container.decode(ChannelID.self, forKey: .channelId)
        role = try container.decode(ChannelRole.self, forKey: .role)
        state = try container.decode(MembershipState.self, forKey: .state)
        joinedAt = try container.decode(Timestamp.self, forKey: .joinedAt)
        joinedSeq = try container.decode(Seq.self, forKey: .joinedSeq)
        readSeq = try container.decode(Seq.self, forKey: .readSeq)
        readCount = try container.decode(Int.self, forKey: .readCount)
        lastReadAt = try container.decodeIfPresent(Timestamp.self, forKey: .lastReadAt)
        historyFloor = try container.decode(Seq.self, forKey: .historyFloor)
        hiddenState = try container.decode(HiddenState.self, forKey: .hiddenState)
        hiddenOrdinal = try container.decode(Int.self, forKey: .hiddenOrdinal)
        mentionSeq = try container.decodeIfPresent(Seq.self, forKey: .mentionSeq) ?? 0
        mentionMessage = try container.decodeIfPresent(MessageID.self, forKey: .mentionMessage)
        mutedUntil = try container.decodeIfPresent(Timestamp.self, forKey: .mutedUntil)
        bannedUntil = try container.decodeIfPresent(Timestamp.self, forKey: .bannedUntil)
        notificationsMutedUntil = try container.decodeIfPresent(Timestamp.self, forKey: .notificationsMutedUntil)
        channelSeq = try container.decode(Seq.self, forKey: .channelSeq)
        userSeq = try container.decode(Seq.self, forKey: .userSeq)
    }
}

extension Membership: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("role", role)
        json.member("state", state)
        json.member("joinedAt", joinedAt)
        json.member("joinedSeq", joinedSeq)
        json.member("readSeq", readSeq)
        json.member("readCount", readCount)
        json.member("lastReadAt", lastReadAt)
        json.member("historyFloor", historyFloor)
        json.member("hiddenState", hiddenState)
        json.member("hiddenOrdinal", hiddenOrdinal)
        if mentionSeq != 0 { json.member("mentionSeq", mentionSeq) }
        json.member("mentionMessage", mentionMessage)
        json.member("mutedUntil", mutedUntil)
        json.member("bannedUntil", bannedUntil)
        json.member("notificationsMutedUntil", notificationsMutedUntil)
        json.member("channelSeq", channelSeq)
        json.member("userSeq", userSeq)
        json.endObject()
    }
}

extension Membership: PlainReadable {
    // derived: init(plainly:)
    package init?(plainly json: inout PlainJSON) {
        var (channelId, role, state, joinedAt, joinedSeq): (ChannelID?, ChannelRole?, MembershipState?, Timestamp?, Seq?)
        var (readSeq, readCount, lastReadAt, historyFloor, hiddenState): (Seq?, Int?, Timestamp?, Seq?, HiddenState?)
        var (hiddenOrdinal, mentionSeq, mentionMessage, mutedUntil, bannedUntil): (Int?, Seq?, MessageID?, Timestamp?, Timestamp?)
        var (notificationsMutedUntil, channelSeq, userSeq): (Timestamp?, Seq?, Seq?)
        let isPlain = json.members { key, json in
            switch key {
            case "channelId": json.read(into: &channelId)
            case "role": json.read(into: &role)
            case "state": json.read(into: &state)
            case "joinedAt": json.read(into: &joinedAt)
            case "joinedSeq": json.read(into: &joinedSeq)
            case "readSeq": json.read(into: &readSeq)
            case "readCount": json.read(into: &readCount)
            case "lastReadAt": json.read(into: &lastReadAt)
            case "historyFloor": json.read(into: &historyFloor)
            case "hiddenState": json.read(into: &hiddenState)
            case "hiddenOrdinal": json.read(into: &hiddenOrdinal)
            case "mentionSeq": json.read(into: &mentionSeq)
            case "mentionMessage": json.read(into: &mentionMessage)
            case "mutedUntil": json.read(into: &mutedUntil)
            case "bannedUntil": json.read(into: &bannedUntil)
            case "notificationsMutedUntil": json.read(into: &notificationsMutedUntil)
            case "channelSeq": json.read(into: &channelSeq)
            case "userSeq": json.read(into: &userSeq)
            default: json.pass() != nil
            }
        }
        guard isPlain, let channelId, let role, let state, let joinedAt, let joinedSeq, let readSeq, let readCount,
            let historyFloor, let hiddenState, let hiddenOrdinal, let channelSeq, let userSeq
        else { return nil }
        self.init(
            channelId: channelId, role: role, state: state, joinedAt: joinedAt, joinedSeq: joinedSeq, readSeq: readSeq,
            readCount: readCount, lastReadAt: lastReadAt, historyFloor: historyFloor, hiddenState: hiddenState,
            hiddenOrdinal: hiddenOrdinal, mentionSeq: mentionSeq ?? 0, mentionMessage: mentionMessage, mutedUntil: mutedUntil,
            bannedUntil: bannedUntil, notificationsMutedUntil: notificationsMutedUntil, channelSeq: channelSeq, userSeq: userSeq
        )
    }
}

/// Whether a user hid a channel from their own lists (SB-29).
public enum HiddenState: OpenWireEnumeration {
    /// Shown.
    case unhidden
    /// Comes back by itself with the next message.
    case hiddenAllowAutoUnhide
    /// Archived: comes back only when unhidden.
    case hiddenPreventAutoUnhide
    /// A state unknown to this version. The channel counts as hidden here.
    case unknown(String)

    public static let allCases: [HiddenState] = [.unhidden, .hiddenAllowAutoUnhide, .hiddenPreventAutoUnhide]

    public var rawValue: String {
        switch self {
        case .unhidden: "unhidden"
        case .hiddenAllowAutoUnhide: "hiddenAllowAutoUnhide"
        case .hiddenPreventAutoUnhide: "hiddenPreventAutoUnhide"
        case .unknown(let name): name
        }
    }
}

/// A row of a member list: the member, the user, and whether they are connected (SB-22, R15).
public struct MemberEntry: Codable, Hashable, Sendable {
    /// The membership.
    public var member: Member
    /// Nil for a user who no longer exists.
    public var user: User?
    /// Whether the user is currently connected.
    public var isOnline: Bool
    /// When the user was last online; absent while they are online, and if they don't share it (``UserPresence/lastActiveAt``).
    public var lastActiveAt: Timestamp?
    /// When the member's mute ends. Only for callers with `member.listMuted`.
    public var mutedUntil: Timestamp?
    /// When the user's ban ends. Only for callers with `member.listBanned`.
    public var bannedUntil: Timestamp?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        member: Member, user: User? = nil, isOnline: Bool, lastActiveAt: Timestamp? = nil, mutedUntil: Timestamp? = nil,
        bannedUntil: Timestamp? = nil
    ) {
        self.member = member
        self.user = user
        self.isOnline = isOnline
        self.lastActiveAt = lastActiveAt
        self.mutedUntil = mutedUntil
        self.bannedUntil = bannedUntil
    }
}

extension MemberEntry: Identifiable {
    /// The member's user id.
    public var id: UserID { member.userId }
}

extension MemberEntry: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("member", member)
        json.member("user", user)
        json.member("isOnline", isOnline)
        json.member("lastActiveAt", lastActiveAt)
        json.member("mutedUntil", mutedUntil)
        json.member("bannedUntil", bannedUntil)
        json.endObject()
    }
}
