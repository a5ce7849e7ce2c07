import RoostAPI

/// The ledger's table of types (§8.2), one line for each right.
///
/// The columns: stranger, left, invited, member, muted, banned, guide, operator, owner; the app's moderator, the app's admin.
/// y allowed · n not found · m not a member · p not permitted · k the kind forbids it · b banned · i an invitation is required ·
/// v not invited · s sending isn't allowed · o somebody else's message · u muted
extension Kind {
    static let all: [Kind] = [
        community, live, broadcast, conversation, standard, `private`, group, publicGroup, messaging, livestream, noticeboard,
    ]

    /// The types without mentions, unless a policy is changed.
    static let withoutMentions: Set<ChannelType> = [.conversation, .broadcast]

    /// Open to all, with all moderation tools (AM-14).
    static let community = Kind("community", .community, discovery: "everyone", joining: "everyone", open)

    /// A community that only members and admins find; anyone who knows the id can join (AM-15, D-33).
    static let live = Kind("live", .live, discovery: "members", joining: "everyone", unlisted(open))

    /// Admins write and moderate, all others read (AM-16).
    static let broadcast = Kind(
        "broadcast", .broadcast, discovery: "everyone", joining: "everyone", createdByUsers: .refused(.kindForbids),
        open.merging([
            .send: Line("s s s s s b s s s  s y"),
            .editOwn: Line("m m m k k b k k k  k y"),
            .editOthers: Line("m m m k k b k k k  k y"),
            .deleteOthers: Line("m m m k k b k k k  k y"),
            .moderate: Line("k k k k k b k k k  k y"),
            .listRestricted: Line("k k k k k b k k k  k y"),
            .demote: Line("k k k k k b k k k  k y"),
            .crown: Line("k k k k k b k k k  k y"),
            .appoint: Line("k k k k k b k k k  k y"),
        ]) { $1 })

    /// A conversation of a fixed set of people, which not even admins see, without any moderation (AM-17, AM-18).
    static let conversation = Kind(
        "conversation", .conversation, discovery: "membersOnly", joining: "nobody",
        [
            .find: Line("n n n y y n y y y  n n"),
            .listMembers: Line("n n n y y n y y y  n n"),
            .listRestricted: Line("n n n k k n k k k  n n"),
            .join: Line("n n n k k n k k k  n n"),
            .leave: Line("n n n k k n k k k  n n"),
            .accept: Line("n n n y y n y y y  n n"),
            .decline: Line("n n n v v n v v v  n n"),
            .listInvitations: Line("n n n y y n y y y  n n"),
            .add: Line("n n n k k n k k k  n n"),
            .remove: Line("n n n k k n k k k  n n"),
            .removeOperator: Line("n n n k k n k k k  n n"),
            .invite: Line("n n n k k n k k k  n n"),
            .withdrawOthers: Line("n n n k k n k k k  n n"),
            .readHistory: Line("n n n y y n y y y  n n"),
            .watch: Line("n n n y y n y y y  n n"),
            .send: Line("n n n y u n y y y  n n"),
            .sendAdmin: Line("n n n k k n k k k  n n"),
            .editOwn: Line("n n n y u n y y y  n n"),
            .editOthers: Line("n n n k k n k k k  n n"),
            .deleteOwn: Line("n n n y y n y y y  n n"),
            .deleteOthers: Line("n n n k k n k k k  n n"),
            .update: Line("n n n y y n y y y  n n"),
            .moderate: Line("n n n k k n k k k  n n"),
            .demote: Line("n n n k k n k k k  n n"),
            .crown: Line("n n n k k n k k k  n n"),
            .appoint: Line("n n n k k n k k k  n n"),
            .setPolicy: Line("n n n k k n k k k  n n"),
            .delete: Line("n n n k k n k k k  n n"),
            .own: Line("n n n y y n y y y  n n"),
        ])

    /// Kept as stored: they can be read, but not changed by anybody (AM-19).
    static let standard = Kind(
        "standard", .standard, discovery: "everyone", joining: "nobody", createdByUsers: .refused(.kindForbids),
        createdByAdmins: .refused(.kindForbids), kept)
    static let `private` = Kind(
        "private", .private, discovery: "members", joining: "nobody", createdByUsers: .refused(.kindForbids),
        createdByAdmins: .refused(.kindForbids),
        unlisted(kept).merging([
            .join: Line("n n k k k b k k k  k k"), .listRestricted: Line("n n m k k b k k k  k k"),
        ]) { $1 })

    /// Private: members find it and joining requires an invitation. Operators delete it (SB-03, SB-19).
    static let group = Kind(
        "group", .group, discovery: "members", joining: "invited",
        unlisted(open).merging([
            .join: Line("i i y y y b y y y  i y"), .delete: Line("n n m p p b p y y  y y"),
        ]) { $1 })
    static let publicGroup = Kind(
        "public group", .group, discovery: "everyone", joining: "everyone",
        open.merging([.delete: Line("m m m p p b p y y  y y")]) { $1 })

    static let messaging = Kind(
        "messaging", .messaging, discovery: "members", joining: "invited",
        unlisted(open).merging([.join: Line("i i y y y b y y y  i y")]) { $1 })

    /// Non-members read and write too (ST-08, D-27).
    static let livestream = Kind(
        "livestream", .livestream, discovery: "everyone", joining: "everyone",
        open.merging([
            .readHistory: Line("y y y y y b y y y  y y"),
            .watch: Line("y y y y y b y y y  y y"),
            .send: Line("y y y y u b y y y  y y"),
            .editOwn: Line("y y y y u b y y y  y y"),
            .deleteOwn: Line("y y y y y b y y y  y y"),
        ]) { $1 })

    /// An operator's own type: everybody reads, operators write, only the owner moderates, nobody leaves or deletes (R03).
    static let noticeboard = Kind(
        "noticeboard", "noticeboard", discovery: "everyone", joining: "invited",
        open.merging([
            .listRestricted: Line("m m m p p b p p y  m y"),
            .join: Line("i i y y y b y y y  i y"),
            .leave: Line("k k k k k k k k k  k k"),
            .add: Line("m m m p p b p p y  m y"),
            .remove: Line("m m m p p b p p y  m y"),
            .removeOperator: Line("m m m p p b p p y  m y"),
            .invite: Line("m m m p p b p y y  y y"),
            .withdrawOthers: Line("m m m p p b p p y  m y"),
            .readHistory: Line("y y y y y b y y y  y y"),
            .watch: Line("y y y y y b y y y  y y"),
            .send: Line("m m m s s b s y y  y y"),
            .editOwn: Line("m m m p p b p y y  y y"),
            .editOthers: Line("m m m o o b o o y  m y"),
            .deleteOwn: Line("y y y y y b y y y  y y"),
            .deleteOthers: Line("m m m o o b o o y  m y"),
            .update: Line("m m m y y b y y y  y y"),
            .moderate: Line("m m m p p b p p y  m y"),
            .demote: Line("m m m p p b p p y  m y"),
            .crown: Line("m m m p p b p p y  m y"),
            .appoint: Line("m m m p p b p p y  m y"),
            .delete: Line("k k k k k b k k k  k k"),
        ]) { $1 })

    /// The policy of the noticeboard type.
    static var noticeboardPolicy: PolicyChanges {
        var changes = PolicyChanges(join: .invited, invite: .operators, read: .everyone, send: .operators)
        changes.leave = .nobody
        changes.add = .owners
        changes.remove = .owners
        changes.update = .members
        changes.moderate = .owners
        changes.delete = .nobody
        return changes
    }

    // MARK: Shared lines

    private static let open: [Right: Line] = [
        .find: Line("y y y y y b y y y  y y"),
        .listMembers: Line("y y y y y b y y y  y y"),
        .listRestricted: Line("m m m p p b p y y  y y"),
        .join: Line("y y y y y b y y y  y y"),
        .leave: Line("y y y y y y y y y  y y"),
        .accept: Line("v v y y y b y y y  v v"),
        .decline: Line("v v y v v b v v v  v v"),
        .listInvitations: Line("m m m y y b y y y  y y"),
        .add: Line("m m m p p b p y y  y y"),
        .remove: Line("m m m p p b y y y  y y"),
        .removeOperator: Line("m m m p p b p p y  y y"),
        .invite: Line("m m m y y b y y y  y y"),
        .withdrawOthers: Line("m m m p p b y y y  y y"),
        .readHistory: Line("m m m y y b y y y  y y"),
        .watch: Line("m m m y y b y y y  y y"),
        .send: Line("m m m y u b y y y  y y"),
        .sendAdmin: Line("p p p p p b p p p  p y"),
        .editOwn: Line("m m m y u b y y y  y y"),
        .editOthers: Line("m m m o o b o y y  y y"),
        .deleteOwn: Line("m m m y y b y y y  y y"),
        .deleteOthers: Line("m m m o o b o y y  y y"),
        .update: Line("m m m p p b y y y  y y"),
        .moderate: Line("m m m p p b p y y  y y"),
        .demote: Line("m m m p p b p p y  y y"),
        .crown: Line("m m m p p b p p y  p y"),
        .appoint: Line("m m m p p b p y y  y y"),
        .setPolicy: Line("m m m p p b p p y  p y"),
        .delete: Line("m m m p p b p p y  m y"),
        .own: Line("m m m y y b y y y  m m"),
    ]

    private static let kept: [Right: Line] = open.merging([
        .listRestricted: Line("k k k k k b k k k  k k"),
        .join: Line("k k k k k b k k k  k k"),
        .leave: Line("k k k k k k k k k  k k"),
        .add: Line("k k k k k b k k k  k k"),
        .remove: Line("k k k k k b k k k  k k"),
        .removeOperator: Line("k k k k k b k k k  k k"),
        .invite: Line("k k k k k b k k k  k k"),
        .withdrawOthers: Line("k k k k k b k k k  k k"),
        .send: Line("k k k k k b k k k  k k"),
        .sendAdmin: Line("k k k k k b k k k  k k"),
        .editOwn: Line("m m m k k b k k k  k k"),
        .editOthers: Line("m m m k k b k k k  k k"),
        .deleteOthers: Line("m m m k k b k k k  k k"),
        .update: Line("k k k k k b k k k  k k"),
        .moderate: Line("k k k k k b k k k  k k"),
        .demote: Line("k k k k k b k k k  k k"),
        .crown: Line("k k k k k b k k k  k k"),
        .appoint: Line("k k k k k b k k k  k k"),
        .setPolicy: Line("k k k k k b k k k  k k"),
        .delete: Line("k k k k k b k k k  k y"),
    ]) { $1 }

    /// The same for users who know of the channel; users who were never invited learn of it only by joining, and invited ones see only its summary.
    private static func unlisted(_ lines: [Right: Line]) -> [Right: Line] {
        var lines = lines.mapValues { $0.hidden() }
        lines[.join] = open[.join]
        lines[.listMembers] = open[.listMembers]?.hidden(fromInvited: .refused(.notMember))
        return lines
    }
}

extension Line {
    /// The line of a channel that strangers and former members don't know of.
    fileprivate func hidden(fromInvited: Outcome? = nil) -> Line {
        var line = self
        line.replace([.stranger, .left], with: .refused(.notFound))
        if let fromInvited { line.replace([.invited], with: fromInvited) }
        return line
    }
}
