import RoostAPI
import RoostCore

/// The values from which an operation is made.
struct Fixture: Sendable {
    var channel: ChannelID
    /// The caller's own message, and another user's.
    var own = MessageID(rawValue: 1)
    var others = MessageID(rawValue: 1)
    /// The caller's own message that another user has deleted.
    var removed = MessageID(rawValue: 1)
    /// The user whom the caller invited.
    var invited: UserID = "unknown"
}

/// One operation of the matrix, in one of the variants that the rules distinguish.
struct Row: Sendable {
    let name: String
    let operationName: String
    let right: Right
    /// The permissions of which a refusal names one: the operation's own, and those that it also requires.
    let permissions: [Permission]
    /// The only permission that decides whether the operation is allowed; nil if a rank or several permissions decide.
    let decisive: Permission?
    /// Whether every type has it off, and users who otherwise may do it are refused with `feature_disabled`.
    let isOff: Bool
    let make: @Sendable (Fixture) -> any Handled

    /// - Parameter variant: The variant, if an operation has several rows.
    init<O: Handled>(
        _ operation: O.Type, _ right: Right, _ variant: String? = nil, beside others: [Permission] = [],
        decisive: Permission? = nil,
        dependsOnMore: Bool = false, isOff: Bool = false, _ make: @escaping @Sendable (Fixture) -> O
    ) {
        name = O.name + (variant.map { " (\($0))" } ?? "")
        operationName = O.name
        self.right = right
        permissions = [O.permission] + others
        self.decisive = dependsOnMore || isOff ? nil : decisive ?? O.permission
        self.isOff = isOff
        self.make = make
    }
}

enum Rows {
    /// The target users of the matrix's operations: a member, an operator, and one who is in no channel.
    static let (target, chief, outsider): (UserID, UserID, UserID) = ("target", "chief", "outsider")

    static let inChannels: [Row] = channels + members + invitations + messages + reading

    private static let channels: [Row] = [
        Row(GetChannel.self, .find) { GetChannel(channel: $0.channel) },
        Row(UpdateChannel.self, .update) { UpdateChannel(channel: $0.channel, displayName: "x") },
        Row(UpdateChannel.self, .setPolicy, "policy", beside: [.channelUpdatePolicy], decisive: .channelUpdatePolicy) {
            var update = UpdateChannel(channel: $0.channel)
            update.policy = PolicyChanges(maxMembers: 50)
            return update
        },
        Row(DeleteChannel.self, .delete) { DeleteChannel(channel: $0.channel) },
        Row(FreezeChannel.self, .moderate) { FreezeChannel(channel: $0.channel) },
        Row(UnfreezeChannel.self, .moderate) { UnfreezeChannel(channel: $0.channel) },
        Row(SilenceChannel.self, .moderate) { SilenceChannel(channel: $0.channel, seconds: 60) },
        Row(UnsilenceChannel.self, .moderate) { UnsilenceChannel(channel: $0.channel) },
        Row(SetRateLimit.self, .moderate) { SetRateLimit(channel: $0.channel, messages: 1, windowSeconds: 1) },
        Row(RemoveRateLimit.self, .moderate) { RemoveRateLimit(channel: $0.channel) },
        Row(HideChannel.self, .own) { HideChannel(channel: $0.channel) },
        Row(ResetHistory.self, .own) { ResetHistory(channel: $0.channel) },
        Row(UnhideChannel.self, .own) { UnhideChannel(channel: $0.channel) },
        Row(MuteNotifications.self, .own) { MuteNotifications(channel: $0.channel) },
        Row(UnmuteNotifications.self, .own) { UnmuteNotifications(channel: $0.channel) },
        Row(ExplainPermission.self, .explain, dependsOnMore: true) {
            ExplainPermission(channel: $0.channel, permission: .channelRead)
        },
        Row(ExplainPermission.self, .explainOther, "of another", beside: [.userManage], dependsOnMore: true) {
            ExplainPermission(channel: $0.channel, permission: .channelRead, user: target)
        },
    ]

    private static let members: [Row] = [
        Row(JoinChannel.self, .join) { JoinChannel(channel: $0.channel) },
        Row(LeaveChannel.self, .leave) { LeaveChannel(channel: $0.channel) },
        Row(ListMembers.self, .listMembers) { ListMembers(channel: $0.channel) },
        Row(ListMembers.self, .listRestricted, "muted", beside: [.memberListMuted], decisive: .memberListMuted) {
            ListMembers(channel: $0.channel, states: [.muted])
        },
        Row(ListMembers.self, .listRestricted, "banned", beside: [.memberListBanned], decisive: .memberListBanned) {
            ListMembers(channel: $0.channel, states: [.banned])
        },
        Row(SearchMembers.self, .listMembers) { SearchMembers(channel: $0.channel, text: "t") },
        Row(SearchMembers.self, .listRestricted, "muted", beside: [.memberListMuted], decisive: .memberListMuted) {
            SearchMembers(channel: $0.channel, text: "t", states: [.muted])
        },
        Row(SearchMembers.self, .listRestricted, "banned", beside: [.memberSearchBanned], decisive: .memberSearchBanned) {
            SearchMembers(channel: $0.channel, text: "t", states: [.banned])
        },
        Row(GetMember.self, .seeMember, dependsOnMore: true) { GetMember(channel: $0.channel, user: target) },
        Row(AddMembers.self, .add) { AddMembers(channel: $0.channel, users: [outsider]) },
        Row(RemoveMembers.self, .remove) { RemoveMembers(channel: $0.channel, users: [target]) },
        Row(RemoveMembers.self, .removeOperator, "an operator", dependsOnMore: true) {
            RemoveMembers(channel: $0.channel, users: [chief])
        },
        Row(SetMemberRole.self, .moderate) { SetMemberRole(channel: $0.channel, users: [target], role: "guide") },
        Row(SetMemberRole.self, .demote, "an operator's", dependsOnMore: true) {
            SetMemberRole(channel: $0.channel, users: [chief], role: .member)
        },
        Row(SetMemberRole.self, .crown, "owner", dependsOnMore: true) {
            SetMemberRole(channel: $0.channel, users: [target], role: .owner)
        },
        Row(SetMemberRole.self, .appoint, "operator", dependsOnMore: true) {
            SetMemberRole(channel: $0.channel, users: [target], role: .operator)
        },
    ]

    private static let invitations: [Row] = [
        Row(InviteMembers.self, .invite) { InviteMembers(channel: $0.channel, users: [outsider]) },
        Row(AcceptInvitation.self, .accept) { AcceptInvitation(channel: $0.channel) },
        Row(DeclineInvitation.self, .decline, dependsOnMore: true) { DeclineInvitation(channel: $0.channel) },
        Row(WithdrawInvitations.self, .invite, "one's own") {
            WithdrawInvitations(channel: $0.channel, users: [$0.invited])
        },
        Row(WithdrawInvitations.self, .withdrawOthers, "another's", beside: [.memberRemove], dependsOnMore: true) {
            WithdrawInvitations(channel: $0.channel, users: [Relation.invited.user])
        },
        Row(ListInvitations.self, .listInvitations) { ListInvitations(channel: $0.channel) },
    ]

    private static let messages: [Row] = [
        Row(SendMessage.self, .send) { SendMessage(channel: $0.channel, clientId: "new", text: "x") },
        Row(SendMessage.self, .mention, "that mentions", beside: [.messageMention], dependsOnMore: true) {
            SendMessage(channel: $0.channel, clientId: "new", text: "x", mentionees: [.users([target])])
        },
        // The refusal names the place of the channel besides the explained rule.
        Row(SendAdminMessage.self, .sendAdmin, dependsOnMore: true) {
            SendAdminMessage(channels: [$0.channel], clientId: "new", text: "x")
        },
        Row(ListMessages.self, .readHistory) { ListMessages(channel: $0.channel) },
        Row(ListMessages.self, .readHistory, "around a message") {
            ListMessages(channel: $0.channel, aroundMessage: $0.others)
        },
        Row(ListMentions.self, .readHistory, "of a channel", beside: [.historyRead], decisive: .historyRead) {
            ListMentions(channel: $0.channel)
        },
        Row(GetMessage.self, .readHistory, "own") { GetMessage(channel: $0.channel, message: $0.own) },
        Row(GetMessage.self, .readHistory, "another's") { GetMessage(channel: $0.channel, message: $0.others) },
        Row(EditMessage.self, .editOwn, "own", beside: [.historyRead]) {
            EditMessage(channel: $0.channel, message: $0.own, text: "y")
        },
        Row(
            EditMessage.self, .editOthers, "another's", beside: [.historyRead, .messageEditAny], decisive: .messageEditAny
        ) { EditMessage(channel: $0.channel, message: $0.others, text: "y") },
        Row(
            EditMessage.self, .mentionByEdit, "own, that mentions", beside: [.historyRead, .messageMention], dependsOnMore: true
        ) { EditMessage(channel: $0.channel, message: $0.own, mentionees: [.users([target])]) },
        Row(
            EditMessage.self, .mentionInOthers, "another's, that mentions",
            beside: [.historyRead, .messageEditAny, .messageMention], dependsOnMore: true
        ) { EditMessage(channel: $0.channel, message: $0.others, mentionees: [.users([outsider, chief])]) },
        Row(UpdateMetaArrays.self, .editOwn, "own", beside: [.historyRead]) {
            UpdateMetaArrays(channel: $0.channel, message: $0.own, create: ["k"])
        },
        Row(
            UpdateMetaArrays.self, .editOthers, "another's", beside: [.historyRead, .messageEditAny], decisive: .messageEditAny
        ) { UpdateMetaArrays(channel: $0.channel, message: $0.others, create: ["k"]) },
        Row(DeleteMessage.self, .deleteOwn, "own", beside: [.historyRead]) {
            DeleteMessage(channel: $0.channel, message: $0.own)
        },
        Row(
            DeleteMessage.self, .deleteOthers, "another's", beside: [.historyRead, .messageDeleteAny], decisive: .messageDeleteAny
        ) { DeleteMessage(channel: $0.channel, message: $0.others) },
        Row(PurgeMessage.self, .deleteOwn, "own", beside: [.historyRead]) {
            PurgeMessage(channel: $0.channel, message: $0.own)
        },
        Row(
            PurgeMessage.self, .deleteOthers, "another's", beside: [.historyRead, .messageDeleteAny], decisive: .messageDeleteAny
        ) { PurgeMessage(channel: $0.channel, message: $0.others) },
        // No permission says whose deletion it was.
        Row(
            PurgeMessage.self, .purgeRemoved, "own, that another has deleted", beside: [.historyRead, .messageDeleteAny],
            dependsOnMore: true
        ) { PurgeMessage(channel: $0.channel, message: $0.removed) },
        Row(
            UndeleteMessage.self, .undeleteRemoved, "own, that another has deleted", beside: [.historyRead, .messageDeleteAny],
            dependsOnMore: true
        ) { UndeleteMessage(channel: $0.channel, message: $0.removed) },
        Row(DeleteMessages.self, .deleteOwn, "own", beside: [.historyRead]) {
            DeleteMessages(channel: $0.channel, messages: [$0.own])
        },
        Row(UndeleteMessage.self, .editOwn, "own", beside: [.historyRead]) {
            UndeleteMessage(channel: $0.channel, message: $0.own)
        },
        Row(
            UndeleteMessage.self, .deleteOthers, "another's", beside: [.historyRead, .messageDeleteAny],
            decisive: .messageDeleteAny
        ) { UndeleteMessage(channel: $0.channel, message: $0.others) },
        Row(ListMessageVersions.self, .moderate, "own") { ListMessageVersions(channel: $0.channel, message: $0.own) },
        Row(ListMessageVersions.self, .moderate, "another's") { ListMessageVersions(channel: $0.channel, message: $0.others) },
        Row(DeleteMessagesForMe.self, .own, "own", beside: [.historyRead]) {
            DeleteMessagesForMe(channel: $0.channel, messages: [$0.own])
        },
        Row(DeleteMessagesForMe.self, .own, "another's", beside: [.historyRead]) {
            DeleteMessagesForMe(channel: $0.channel, messages: [$0.others])
        },
        // The refusal names the place of the message besides the explained rule.
        Row(DeleteMessages.self, .deleteOthers, "another's", beside: [.historyRead, .messageDeleteAny], dependsOnMore: true) {
            DeleteMessages(channel: $0.channel, messages: [$0.others])
        },
    ]

    private static let reading: [Row] = [
        Row(SetDraft.self, .own) { SetDraft(channel: $0.channel, text: "so far") },
        Row(GetDraft.self, .own) { GetDraft(channel: $0.channel) },
        Row(MarkRead.self, .own) { MarkRead(channel: $0.channel) },
        Row(StartReading.self, .own, beside: [.historyRead]) { StartReading(channel: $0.channel) },
        Row(StopReading.self, .nothing, dependsOnMore: true) { StopReading(channel: $0.channel) },
        Row(MarkUnread.self, .own) { MarkUnread(channel: $0.channel, seq: 1) },
        Row(GetUnread.self, .own) { GetUnread(channel: $0.channel) },
        // Every type has it off: permissions are checked first.
        Row(MarkDelivered.self, .own, beside: [.historyRead], isOff: true) { MarkDelivered(channel: $0.channel, seq: 1) },
        Row(ListReaders.self, .readHistory) { ListReaders(channel: $0.channel) },
        Row(ListReaders.self, .readHistory, "own") { ListReaders(channel: $0.channel, message: $0.own) },
        Row(ListReaders.self, .readHistory, "another's") { ListReaders(channel: $0.channel, message: $0.others) },
        Row(WatchChannel.self, .watch) { WatchChannel(channel: $0.channel) },
        Row(UnwatchChannel.self, .nothing, dependsOnMore: true) { UnwatchChannel(channel: $0.channel) },
        Row(ListWatchers.self, .watch) { ListWatchers(channel: $0.channel) },
        Row(StartTyping.self, .send) { StartTyping(channel: $0.channel) },
        Row(StopTyping.self, .nothing, dependsOnMore: true) { StopTyping(channel: $0.channel) },
        Row(SendSignal.self, .send) { SendSignal(channel: $0.channel, type: "wave") },
        Row(GetChannelChanges.self, .readHistory) { GetChannelChanges(channel: $0.channel, after: 0) },
        Row(Resume.self, .nothing, dependsOnMore: true) { Resume(after: 0, channels: [$0.channel.rawValue: 0]) },
    ]

    /// Operations that concern no channel, by who may call them: anybody, or the app's staff.
    static let elsewhere: [(operation: any Handled, isForAll: Bool)] = [
        (GetConfiguration(), true), (ListChannelTypes(), true), (PutChannelType(type: "new"), false),
        (DeleteChannelType(type: "new"), false), (ListRoles(), true),
        (PutRole(role: "new", rank: 1, permissions: []), false), (DeleteRole(role: "new"), false),
        (ListDeadEffects(), false), (RetryEffect(kind: "test.dead", key: "1"), false),
        (UpsertUser(user: "eve"), false), (GetUser(user: target), true), (GetUsers(users: [target]), true), (GetMe(), true),
        (ListChangedUsers(versions: [target.rawValue: 0]), true), (ListUserPresence(users: [target]), true),
        (DeactivateUser(user: outsider), false), (ReactivateUser(user: outsider), false), (RevokeUserTokens(user: outsider), false),
        (RevokeToken(tokenId: "1"), false), (UpdateMe(displayName: "Me"), true), (GetPreferences(), true),
        (UpdatePreferences(autoAcceptInvitations: false), true),
        (QueryChannels(), true), (QueryChannels(membership: .all), true), (ListMyInvitations(), true), (GetTotalUnread(), true),
        (GetMyChanges(after: 0), true), (ListMentions(), true), (ListDrafts(), true), (ListDevices(), true),
        (SignOutDevice(device: "phone"), true),
        (QueryAndWatchChannels(query: QueryChannels()), true),
    ]
}
