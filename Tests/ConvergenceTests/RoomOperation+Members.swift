import RoostAPI
import RoostCore

extension RoomOperation {
    static let ofMembers: [RoomOperation] = [
        RoomOperation("by a stranger", as: "eve", JoinChannel(channel: "general")),
        RoomOperation("by a former member", as: "cid", JoinChannel(channel: "left")),
        RoomOperation("by a member", as: "bob", JoinChannel(channel: "general")),
        RoomOperation("by an invited user", as: "dan", JoinChannel(channel: "team")),
        RoomOperation("by a user invited into a community", as: "dan", JoinChannel(channel: "club")),
        RoomOperation("by a member", as: "bob", LeaveChannel(channel: "general")),
        RoomOperation("by the owner", as: "ann", LeaveChannel(channel: "general")),
        RoomOperation("by a stranger", as: "eve", LeaveChannel(channel: "general")),
        RoomOperation("of a distinct one", as: "bob", LeaveChannel(channel: "pair")),
        RoomOperation("of a hidden one", as: "bob", LeaveChannel(channel: "other")),
        RoomOperation("by the one who invited", as: "bob", LeaveChannel(channel: "team")),

        RoomOperation("of a stranger", as: "ann", AddMembers(channel: "general", users: ["eve"])),
        RoomOperation("of several", as: "ann", AddMembers(channel: "general", users: ["eve", "bob", "dan", "nobody"])),
        RoomOperation("without the history", as: "ann", AddMembers(channel: "general", users: ["eve"], hideHistory: true)),
        RoomOperation(
            "of a former member, without the history", as: "ann", AddMembers(channel: "left", users: ["cid"], hideHistory: true)),
        RoomOperation("of the invited", as: "bob", AddMembers(channel: "team", users: ["dan", "eve"])),
        RoomOperation("of the invited into a community", as: "ann", AddMembers(channel: "club", users: ["dan"])),
        RoomOperation("to a distinct one", as: "ann", AddMembers(channel: "pair", users: ["cid", "dan"])),
        RoomOperation("by an admin", as: "root", role: .admin, AddMembers(channel: "general", users: ["root", "eve"])),
        RoomOperation("of a member", as: "ann", RemoveMembers(channel: "general", users: ["bob"])),
        RoomOperation("of several", as: "ann", RemoveMembers(channel: "general", users: ["cid", "eve", "bob"])),
        RoomOperation("by an operator", as: "bob", RemoveMembers(channel: "team", users: ["cid"])),
        RoomOperation("of an inviter", as: "ann", RemoveMembers(channel: "team", users: ["bob"])),
        RoomOperation("of the owner by an admin", as: "root", role: .admin, RemoveMembers(channel: "general", users: ["ann"])),

        RoomOperation("to operators", as: "ann", SetMemberRole(channel: "general", users: ["bob", "cid", "eve"], role: .operator)),
        RoomOperation("to a role of one's own", as: "ann", SetMemberRole(channel: "team", users: ["bob"], role: "scribe")),
        RoomOperation("down", as: "ann", SetMemberRole(channel: "team", users: ["bob", "cid"], role: .member)),
        RoomOperation("by the member itself", as: "bob", SetMemberRole(channel: "team", users: ["bob"], role: .member)),
        RoomOperation("to the same", as: "ann", SetMemberRole(channel: "team", users: ["bob"], role: .operator)),
        RoomOperation("that hands the channel over", as: "ann", SetMemberRole(channel: "general", users: ["bob"], role: .owner)),
        RoomOperation(
            "in a frozen channel", as: "ann", SetMemberRole(channel: "cold", users: ["bob"], role: .operator)),
    ]

    static let ofInvitations: [RoomOperation] = [
        RoomOperation("of one who comes at once", as: "bob", InviteMembers(channel: "team", users: ["eve"], welcome: "hi")),
        RoomOperation("of one who comes at once into a community", as: "bob", InviteMembers(channel: "club", users: ["eve"])),
        RoomOperation("of one to be asked", as: "ann", InviteMembers(channel: "salon", users: ["dan"], welcome: "hi")),
        RoomOperation("of one to be asked into a community", as: "ann", InviteMembers(channel: "general", users: ["dan"])),
        RoomOperation("of an invited user again", as: "ann", InviteMembers(channel: "team", users: ["dan", "bob"])),
        RoomOperation("of both sorts", as: "ann", InviteMembers(channel: "general", users: ["eve", "dan", "bob", "nobody"])),
        RoomOperation("into a distinct one", as: "ann", InviteMembers(channel: "pair", users: ["dan"])),
        RoomOperation("of both sorts into a distinct one", as: "ann", InviteMembers(channel: "pair", users: ["eve", "dan"])),
        RoomOperation("by an admin", as: "root", role: .admin, InviteMembers(channel: "general", users: ["dan", "root"])),
        RoomOperation("into a group", as: "dan", AcceptInvitation(channel: "team")),
        RoomOperation("into a community", as: "dan", AcceptInvitation(channel: "club")),
        RoomOperation("by a member", as: "bob", AcceptInvitation(channel: "team")),
        RoomOperation("into a group", as: "dan", DeclineInvitation(channel: "team")),
        RoomOperation("into a community", as: "dan", DeclineInvitation(channel: "club")),
        RoomOperation("by the inviter", as: "bob", WithdrawInvitations(channel: "team", users: ["dan", "eve"])),
        RoomOperation("by the owner", as: "ann", WithdrawInvitations(channel: "team", users: ["dan"])),
        RoomOperation("into a community", as: "bob", WithdrawInvitations(channel: "club", users: ["dan"])),
    ]

    static let reads: [RoomOperation] = [
        RoomOperation("message.listVersions", "of another's", as: "ann") {
            ListMessageVersions(channel: "general", message: $0[2].messageId)
        },
        RoomOperation("", as: "ann", GetConfiguration()),
        RoomOperation("", as: "ann", ListChannelTypes()),
        RoomOperation("", as: "ann", ListRoles()),
        RoomOperation("", as: "root", role: .admin, ListDeadEffects()),
        RoomOperation("", as: "ann", ExplainPermission(channel: "general", permission: .messageSend)),
        RoomOperation("", as: "ann", GetUser(user: "bob")),
        RoomOperation("", as: "ann", GetUsers(users: ["bob"])),
        RoomOperation("", as: "ann", GetMe()),
        RoomOperation("", as: "bob", ListMentions()),
        RoomOperation("", as: "ann", GetPreferences()),
        RoomOperation("", as: "ann", GetChannel(channel: "general")),
        RoomOperation("", as: "ann", QueryChannels(membership: .all)),
        RoomOperation("", as: "ann", ListMembers(channel: "general")),
        RoomOperation("", as: "ann", SearchMembers(channel: "general", text: "bo")),
        RoomOperation("", as: "ann", GetMember(channel: "general", user: "bob")),
        RoomOperation("", as: "ann", ListInvitations(channel: "team")),
        RoomOperation("", as: "dan", ListMyInvitations()),
        RoomOperation("", as: "ann", ListMessages(channel: "general")),
        RoomOperation("message.get", "", as: "ann") { GetMessage(channel: "general", message: $0[0].messageId) },
        RoomOperation("", as: "ann", GetUnread(channel: "general")),
        RoomOperation("", as: "ann", GetTotalUnread()),
        RoomOperation("", as: "ann", WatchChannel(channel: "general")),
        RoomOperation("", as: "ann", UnwatchChannel(channel: "general")),
        RoomOperation("", as: "ann", GetChannelChanges(channel: "general", after: 0)),
        RoomOperation("", as: "ann", GetMyChanges(after: 0)),
        RoomOperation("", as: "ann", Resume(after: 0, channels: [:])),
    ]
}
