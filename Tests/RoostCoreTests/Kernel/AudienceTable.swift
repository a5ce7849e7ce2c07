import RoostAPI

/// The table of audiences (ledger §4).
extension AudienceTests {
    /// Sends a message to everyone who still gets the channel's events.
    private static func send(_ device: String = "ann/1", to channel: ChannelID = "room") -> Step {
        .by(device, SendMessage(channel: channel, clientId: "2", text: "x"))
    }

    static let cases: [HeardOperation] =
        messages + channels + states + ends + own + joinings + leavings + roles + invitations + invitationsOfGroups + watching
        + typing + reading

    private static let messages: [HeardOperation] = [
        HeardOperation(
            "AM-02 a message goes to all members and watchers", send("bob/1"), [("members wes/1", "message.new channel:room")]
        ),
        HeardOperation(
            "AM-02 AM-22 an admin's message from outside goes to all members and watchers",
            .byAdmin("root", SendMessage(channel: "room", clientId: "2", text: "x")),
            [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "SB-58 R38 an edit goes to all members, the editor's devices included",
            .by("bob/1") { EditMessage(channel: "room", message: $0, text: "y") },
            [("members wes/1", "message.updated channel:room")]
        ),
        HeardOperation(
            "SB-59 R38 a deletion goes to all members, the deleter's devices included",
            .by("oda/1") { DeleteMessage(channel: "room", message: $0) }, [("members wes/1", "message.deleted channel:room")]),
        HeardOperation(
            "SB-45 MN-01 R38 a mention goes to the named users, on all their devices, not to the sender or to non-members",
            .by(
                "ann/1",
                SendMessage(
                    channel: "room", clientId: "2", text: "x", mentionees: [.users(["bob", "ann", "sam", "fay", "ida"])])),
            [("members wes/1", "message.new channel:room"), ("bob", "mention.received user:bob")]),
        HeardOperation(
            "MN-12 a mention of the channel is sent with the message, not in its own event",
            .by("ann/1", SendMessage(channel: "room", clientId: "2", text: "x", mentionees: [.channel])),
            [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "MN-11 MN-16 an edit with mentions goes to the named users",
            .by("bob/1") { EditMessage(channel: "room", message: $0, mentionees: [.users(["cid"])]) },
            [("members wes/1", "message.updated channel:room"), ("cid", "mention.received user:cid")]),
        HeardOperation(
            "MN-11 an edit that ends a mention goes to the users no longer mentioned",
            after: [.by("bob/1") { EditMessage(channel: "room", message: $0, mentionees: [.users(["cid"])]) }],
            .by("bob/1") { EditMessage(channel: "room", message: $0, mentionees: []) },
            [("members wes/1", "message.updated channel:room"), ("cid", "reading.marked user:cid")]),
        HeardOperation(
            "MN-16 SB-59 a deletion ends its mentions",
            after: [.by("bob/1") { EditMessage(channel: "room", message: $0, mentionees: [.users(["cid"])]) }],
            .by("bob/1") { DeleteMessage(channel: "room", message: $0) },
            [("members wes/1", "message.deleted channel:room"), ("cid", "reading.marked user:cid")]),
        HeardOperation(
            "SB-33 an admin message goes to all members and watchers",
            .byAdmin("root", SendAdminMessage(channels: ["room"], clientId: "2", text: "x")),
            [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "SB-37 a change of a message's lists goes to all members",
            .by("bob/1") { UpdateMetaArrays(channel: "room", message: $0, create: ["k"]) },
            [("members wes/1", "message.updated channel:room")]),
        HeardOperation(
            "SB-59 a deletion among several goes to all members",
            .by("oda/1") { DeleteMessages(channel: "room", messages: [$0]) }, [("members wes/1", "message.deleted channel:room")]),
        HeardOperation(
            "SB-59 a deletion for good goes to all members, and the sender's unread count to the sender's devices",
            .by("oda/1") { PurgeMessage(channel: "room", message: $0) },
            [("bob", "reading.marked user:bob"), ("members wes/1", "message.deleted channel:room")]),
        HeardOperation(
            "SB-59 R24 an undeletion goes to all members, and mentions again",
            after: [
                .by("bob/1") { EditMessage(channel: "room", message: $0, mentionees: [.users(["cid"])]) },
                .by("bob/1") { DeleteMessage(channel: "room", message: $0) },
            ],
            .by("bob/1") { UndeleteMessage(channel: "room", message: $0) },
            [("members wes/1", "message.undeleted channel:room"), ("cid", "mention.received user:cid")]),
        HeardOperation(
            "R24 reading earlier versions goes to nobody",
            .by("oda/1") { ListMessageVersions(channel: "room", message: $0) }, []),
        HeardOperation("a refused message goes to nobody", send("sam/1"), [], isRefused: true),
        HeardOperation(
            "SB-13 a refused invitation goes to nobody", .by("sam/1", InviteMembers(channel: "room", users: ["fay"])), [],
            isRefused: true),
    ]

    private static let channels: [HeardOperation] = [
        HeardOperation(
            "EM-07 EM-35 a new channel goes to its initial members, on all devices of the creator",
            .by("ann/1", CreateChannel(channel: "new", users: ["bob"])),
            [("ann", "channel.created user:ann"), ("bob", "channel.created user:bob")]),
        HeardOperation(
            "AM-25 an existing conversation is answered, which goes to nobody",
            after: [.by("ann/1", CreateChannel(type: .conversation, users: ["bob"]))],
            .by("bob/1", CreateChannel(type: .conversation, users: ["ann"])), []),
        HeardOperation(
            "EM-07 EM-24 EM-25 a new group goes to users who accept at once; the others get an invitation, which goes to the members",
            .by("ann/1", CreateChannel(channel: "new", type: .group, users: ["bob", "sam"])),
            [
                ("ann", "channel.created user:ann"), ("bob", "channel.created user:bob"),
                ("ann", "invitation.accepted user:ann"), ("ann bob", "invitation.received channel:new"),
                ("ann", "invitation.sent user:ann"), ("sam", "invitation.received user:sam"),
            ]),
        HeardOperation(
            "EM-07 AM-02 the members of a new channel get its events from then on",
            after: [.by("ann/1", CreateChannel(channel: "new", users: ["bob"]))],
            send("bob/2", to: "new"), [("ann bob", "message.new channel:new")]),
        HeardOperation(
            "AM-37 EM-11 R11 a channel's change goes to all members and watchers",
            .by("ann/1", UpdateChannel(channel: "room", displayName: "x")), [("members wes/1", "channel.updated channel:room")]),
        HeardOperation(
            "EM-11 a change to the same values goes to nobody",
            after: [.by("ann/1", UpdateChannel(channel: "room", displayName: "x"))],
            .by("ann/1", UpdateChannel(channel: "room", displayName: "x")), []),
        HeardOperation(
            "AM-35 R10 metadata go to all members and watchers",
            .by("ann/1", UpdateChannel(channel: "room", metadata: ["a": 1])),
            [("members wes/1", "channel.metadataUpdated channel:room")]),
    ]

    private static let states: [HeardOperation] = [
        HeardOperation(
            "SB-21 a freeze", .by("oda/1", FreezeChannel(channel: "room")), [("members wes/1", "channel.frozen channel:room")]),
        HeardOperation(
            "SB-21 a repeated freeze goes to nobody", after: [.by("oda/1", FreezeChannel(channel: "room"))],
            .by("ann/1", FreezeChannel(channel: "room")), []),
        HeardOperation(
            "SB-21 the end of a freeze", after: [.by("oda/1", FreezeChannel(channel: "room"))],
            .by("oda/1", UnfreezeChannel(channel: "room")), [("members wes/1", "channel.unfrozen channel:room")]),
        HeardOperation(
            "AM-07 a silence", .by("oda/1", SilenceChannel(channel: "room", seconds: 60)),
            [("members wes/1", "channel.silenced channel:room")]),
        HeardOperation(
            "AM-07 the end of a silence", after: [.by("oda/1", SilenceChannel(channel: "room", seconds: 60))],
            .by("oda/1", UnsilenceChannel(channel: "room")), [("members wes/1", "channel.unsilenced channel:room")]),
        HeardOperation(
            "AM-08 a rate limit", .by("oda/1", SetRateLimit(channel: "room", messages: 1, windowSeconds: 1)),
            [("members wes/1", "channel.rateLimitChanged channel:room")]),
        HeardOperation(
            "AM-08 the end of a rate limit",
            after: [.by("oda/1", SetRateLimit(channel: "room", messages: 1, windowSeconds: 1))],
            .by("oda/1", RemoveRateLimit(channel: "room")), [("members wes/1", "channel.rateLimitChanged channel:room")]),
    ]

    private static let ends: [HeardOperation] = [
        HeardOperation(
            "EM-13 R12 a channel's end goes to members and watchers; invitees and inviters learn that invitations are withdrawn",
            .by("ann/1", DeleteChannel(channel: "room")),
            [
                ("ida", "invitation.withdrawn user:ida"), ("ann", "invitation.withdrawn user:ann"),
                ("members wes/1", "channel.deleted channel:room"),
            ]),
        HeardOperation(
            "EM-13 R12 a group's end and its withdrawn invitations go to its members", in: .group,
            .by("oda/1", DeleteChannel(channel: "room")),
            [
                ("members wes/1", "invitation.withdrawn channel:room"), ("ida", "invitation.withdrawn user:ida"),
                ("ann", "invitation.withdrawn user:ann"), ("members wes/1", "channel.deleted channel:room"),
            ]),
        HeardOperation(
            "EM-13 R12 nothing follows the end", after: [.by("ann/1", DeleteChannel(channel: "room"))],
            .by("ann/1", DeleteChannel(channel: "room")), []),
    ]

    private static let own: [HeardOperation] = [
        HeardOperation(
            "SB-26 EM-35 hiding goes to the user's own devices", .by("bob/1", HideChannel(channel: "room")),
            [("bob", "channel.hidden user:bob")]),
        HeardOperation(
            "SB-59 EM-35 deleting a message for oneself goes to the user's own devices",
            .by("cid/1") { DeleteMessagesForMe(channel: "room", messages: [$0]) },
            [("cid", "message.deletedForMe user:cid")]),
        HeardOperation(
            "SB-28 EM-35 unhiding goes to the user's own devices", after: [.by("bob/1", HideChannel(channel: "room"))],
            .by("bob/2", UnhideChannel(channel: "room")), [("bob", "channel.unhidden user:bob")]),
        HeardOperation("SB-28 unhiding a visible channel goes to nobody", .by("bob/2", UnhideChannel(channel: "room")), []),
        HeardOperation(
            "D-29 EM-35 muting a channel goes to the user's own devices", .by("bob/1", MuteNotifications(channel: "room")),
            [("bob", "channel.notificationsMuted user:bob")]),
        HeardOperation(
            "D-29 EM-35 its end goes to the user's own devices", after: [.by("bob/1", MuteNotifications(channel: "room"))],
            .by("bob/2", UnmuteNotifications(channel: "room")), [("bob", "channel.notificationsUnmuted user:bob")]),
        HeardOperation(
            "D-29 a member who muted a channel still gets its messages",
            after: [.by("bob/1", MuteNotifications(channel: "room"))], send(), [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "SB-26 a member who hid a channel still gets its messages", after: [.by("bob/1", HideChannel(channel: "room"))],
            send(), [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "X-31 EM-35 SB-02 reading goes to the user's own devices, and the position to all members and watchers",
            .by("ann/2", MarkRead(channel: "room")),
            [("ann", "reading.marked user:ann"), ("members wes/1", "read.updated signal")]
        ),
        HeardOperation(
            "SB-60 EM-35 emptying a channel for oneself goes to the user's own devices, and the read position to all",
            .by("bob/1", ResetHistory(channel: "room")),
            [("bob", "channel.historyReset user:bob"), ("members wes/1", "read.updated signal")]),
        HeardOperation(
            "SB-26 EM-35 hiding a channel with its messages goes to the user's own devices, and the read position to all",
            .by("bob/1", HideChannel(channel: "room", hidePreviousMessages: true)),
            [("bob", "channel.hidden user:bob"), ("members wes/1", "read.updated signal")]),
        HeardOperation(
            "X-22 unshared reading goes only to the user's own devices",
            after: [.by("ann/1", UpdatePreferences(sharesReading: false))], .by("ann/2", MarkRead(channel: "room")),
            [("ann", "reading.marked user:ann")]),
        HeardOperation(
            "X-33 X-31 deliveries go to all members and watchers if enabled",
            after: [
                .by("ann/1", UpdateChannel(channel: "room", policy: PolicyChanges(deliveryEvents: true))),
                .by("bob/1", SendMessage(channel: "room", clientId: "new", text: "new")),
            ], .by("ann/2", MarkDelivered(channel: "room", seq: 6)), [("members wes/1", "read.updated signal")]),
        HeardOperation(
            "AM-45 X-31 EM-35 beginning to read goes to the user's own devices, and the position to all members and watchers",
            .by("ann/2", StartReading(channel: "room")),
            [("ann", "reading.marked user:ann"), ("members wes/1", "read.updated signal")]
        ),
        HeardOperation(
            "R25 X-31 EM-35 marking as unread goes to the user's own devices", after: [.by("ann/1", MarkRead(channel: "room"))],
            .by("ann/2", MarkUnread(channel: "room", seq: 1)), [("ann", "reading.unmarked user:ann")]),
        HeardOperation(
            "EM-35 D-13 a draft goes to the user's own devices", .by("ann/2", SetDraft(channel: "room", text: "so far")),
            [("ann", "draft.updated user:ann")]),
        HeardOperation(
            "SB-18 preferences go to the user's own devices", .by("bob/1", UpdatePreferences(autoAcceptInvitations: false)),
            [("bob", "preferences.updated user:bob")]),
        HeardOperation(
            "R38 a profile goes to the user's own devices", .by("bob/1", UpdateMe(metadata: ["a": 1])),
            [("bob", "user.updated user:bob")]),
        HeardOperation(
            "R38 a profile written by an admin goes to the user's devices, and its name to members and watchers",
            .byAdmin("root", UpsertUser(user: "bob", displayName: "x")),
            [("bob", "user.updated user:bob"), ("members wes/1", "users.changed signal")]),
        HeardOperation("a user's deactivation goes to nobody", .byAdmin("root", DeactivateUser(user: "bob")), []),
        HeardOperation(
            "a user's reactivation goes to nobody", after: [.byAdmin("root", DeactivateUser(user: "bob"))],
            .byAdmin("root", ReactivateUser(user: "bob")), []),
        HeardOperation(
            "the revocation of a user's tokens goes to nobody", .byAdmin("root", RevokeUserTokens(user: "bob")), []),
        HeardOperation(
            "retrying an effect goes to nobody", .byAdmin("root", RetryEffect(kind: "test.dead", key: "1")), []),
        HeardOperation("a token's revocation goes to nobody", .byAdmin("root", RevokeToken(tokenId: "stolen")), []),
    ]

    private static let joinings: [HeardOperation] = [
        HeardOperation(
            "EM-23 R38 a joining goes to the other members, and to all devices of the new one by their own stream",
            .by("sam/1", JoinChannel(channel: "room")),
            [("members wes/1", "member.joined channel:room"), ("sam", "member.joined user:sam")]),
        HeardOperation("AM-26 a member's joining goes to nobody", .by("bob/1", JoinChannel(channel: "room")), []),
        HeardOperation(
            "EM-27 a new member gets messages", after: [.by("sam/1", JoinChannel(channel: "room"))], send(),
            [("members sam wes/1", "message.new channel:room")]),
        HeardOperation(
            "AM-40 the added users and the members learn of it",
            .by("oda/1", AddMembers(channel: "room", users: ["sam", "fay"])),
            [
                ("members wes/1", "member.joined channel:room"), ("sam", "member.joined user:sam"),
                ("fay", "member.joined user:fay"),
            ]),
        HeardOperation(
            "AM-40 EM-25 adding invited users accepts their invitations, and the inviter learns it",
            .by("oda/1", AddMembers(channel: "room", users: ["ida"])),
            [
                ("members wes/1", "member.joined channel:room"), ("ida", "member.joined user:ida"),
                ("ann", "invitation.accepted user:ann"),
            ]),
    ]

    private static let leavings: [HeardOperation] = [
        HeardOperation(
            "EM-28 SB-20 a leaving goes to the remaining members, and to all devices of the former one by their own stream",
            .by("bob/1", LeaveChannel(channel: "room")),
            [("ann oda cid wes/1", "member.left channel:room"), ("bob", "member.left user:bob")]),
        HeardOperation(
            "SB-20 EM-28 a member who left gets nothing more", after: [.by("bob/1", LeaveChannel(channel: "room"))], send(),
            [("ann oda cid wes/1", "message.new channel:room")]),
        HeardOperation("EM-28 leaving again goes to nobody", .by("fay/1", LeaveChannel(channel: "room")), []),
        HeardOperation(
            "SB-20 AM-26 a member who left and rejoined gets everything again",
            after: [.by("bob/1", LeaveChannel(channel: "room")), .by("bob/2", JoinChannel(channel: "room"))], send(),
            [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "EM-29 AM-31 removed members learn that they were removed, the others that they left",
            .by("oda/1", RemoveMembers(channel: "room", users: ["bob", "cid"])),
            [
                ("ann oda wes/1", "member.left channel:room"), ("bob", "member.removed user:bob"),
                ("cid", "member.removed user:cid"),
            ]),
        HeardOperation(
            "EM-29 a removed member gets nothing more", after: [.by("oda/1", RemoveMembers(channel: "room", users: ["bob"]))],
            send(),
            [("ann oda cid wes/1", "message.new channel:room")]),
        HeardOperation(
            "EM-29 ST-10 a removed member who watched gets nothing more",
            after: [
                .by("bob/2", WatchChannel(channel: "room")), .by("oda/1", RemoveMembers(channel: "room", users: ["bob"])),
            ], send(), [("ann oda cid wes/1", "message.new channel:room")]),
    ]

    private static let roles: [HeardOperation] = [
        HeardOperation(
            "X-22 EM-34 a role goes to all members, and to its holder by their own stream",
            .by("ann/1", SetMemberRole(channel: "room", users: ["cid"], role: .operator)),
            [("members wes/1", "member.roleChanged channel:room"), ("cid", "member.roleChanged user:cid")]),
        HeardOperation(
            "X-22 EM-34 a new owner and the former one both learn their roles",
            .by("ann/1", SetMemberRole(channel: "room", users: ["bob"], role: .owner)),
            [
                ("members wes/1", "member.roleChanged channel:room"), ("bob", "member.roleChanged user:bob"),
                ("ann", "member.roleChanged user:ann"),
            ]),
        HeardOperation(
            "X-22 a role that the member already has goes to nobody",
            .by("ann/1", SetMemberRole(channel: "room", users: ["cid"], role: .member)), []),
    ]

    /// In a channel whose type sends invitations only to the users concerned.
    private static let invitations: [HeardOperation] = [ChannelType.community, .messaging].flatMap { type in
        [
            HeardOperation(
                "EM-24 EM-35 an invitation goes to the invited user, and to all devices of the inviter", in: type,
                .by("bob/1", InviteMembers(channel: "room", users: ["sam"])),
                [("bob", "invitation.sent user:bob"), ("sam", "invitation.received user:sam")]),
            HeardOperation(
                "SB-18 EM-25 a user who accepts at once is a member: the members learn it, and the inviter", in: type,
                .by("bob/1", InviteMembers(channel: "room", users: ["fay"])),
                [
                    ("members wes/1", "member.joined channel:room"), ("fay", "member.joined user:fay"),
                    ("bob", "invitation.accepted user:bob"),
                ]),
            HeardOperation(
                "EM-24 inviting an invited user again goes to nobody", in: type,
                .by("bob/1", InviteMembers(channel: "room", users: ["ida"])), []),
            HeardOperation(
                "EM-25 SB-15 SB-17 an acceptance goes to the inviter, and the joining to the members", in: type,
                .by("ida/1", AcceptInvitation(channel: "room")),
                [
                    ("members wes/1", "member.joined channel:room"), ("ida", "member.joined user:ida"),
                    ("ann", "invitation.accepted user:ann"),
                ]),
            HeardOperation(
                "EM-26 SB-16 a refusal goes to the inviter, and to all devices of the invited user", in: type,
                .by("ida/1", DeclineInvitation(channel: "room")),
                [("ida", "invitation.declined user:ida"), ("ann", "invitation.declined user:ann")]),
            HeardOperation(
                "SB-16 a withdrawn invitation goes to the invited user and to the inviter", in: type,
                .by("oda/1", WithdrawInvitations(channel: "room", users: ["ida"])),
                [("ida", "invitation.withdrawn user:ida"), ("ann", "invitation.withdrawn user:ann")]),
            HeardOperation(
                "SB-16 a user who refused gets nothing of the channel", in: type,
                after: [.by("ida/1", DeclineInvitation(channel: "room"))],
                send(), [("members wes/1", "message.new channel:room")]),
            HeardOperation(
                "EM-27 SB-15 a user who accepted gets messages", in: type, after: [.by("ida/1", AcceptInvitation(channel: "room"))],
                send(), [("members ida wes/1", "message.new channel:room")]),
            HeardOperation(
                "EM-24 invited users get no messages", in: type, send(), [("members wes/1", "message.new channel:room")]),
        ]
    }

    /// In a channel whose type sends invitations to all members.
    private static let invitationsOfGroups: [HeardOperation] = [
        HeardOperation(
            "SB-17 EM-24 an invitation into a group goes to its members too", in: .group,
            .by("bob/1", InviteMembers(channel: "room", users: ["sam"])),
            [
                ("members wes/1", "invitation.received channel:room"), ("bob", "invitation.sent user:bob"),
                ("sam", "invitation.received user:sam"),
            ]),
        HeardOperation(
            "SB-17 SB-18 a user who accepts at once joins the group", in: .group,
            .by("bob/1", InviteMembers(channel: "room", users: ["fay"])),
            [
                ("members wes/1", "member.joined channel:room"), ("fay", "member.joined user:fay"),
                ("bob", "invitation.accepted user:bob"),
            ]),
        HeardOperation(
            "SB-17 EM-25 an acceptance goes to a group's members with the joining", in: .group,
            .by("ida/1", AcceptInvitation(channel: "room")),
            [
                ("members wes/1", "member.joined channel:room"), ("ida", "member.joined user:ida"),
                ("ann", "invitation.accepted user:ann"),
            ]),
        HeardOperation(
            "SB-16 SB-17 EM-26 a refusal goes to a group's members too", in: .group,
            .by("ida/1", DeclineInvitation(channel: "room")),
            [
                ("members wes/1", "invitation.declined channel:room"), ("ida", "invitation.declined user:ida"),
                ("ann", "invitation.declined user:ann"),
            ]),
        HeardOperation(
            "SB-17 a withdrawn invitation goes to a group's members too", in: .group,
            .by("ann/2", WithdrawInvitations(channel: "room", users: ["ida"])),
            [
                ("members wes/1", "invitation.withdrawn channel:room"), ("ida", "invitation.withdrawn user:ida"),
                ("ann", "invitation.withdrawn user:ann"),
            ]),
    ]

    private static let watching: [HeardOperation] = [
        HeardOperation(
            "ST-13 watching goes to watchers", .by("bob/1", WatchChannel(channel: "room")),
            [("bob/1 wes/1", "watching.changed signal")]),
        HeardOperation(
            "ST-13 the end of watching goes to watchers", after: [.by("bob/1", WatchChannel(channel: "room"))],
            .by("bob/1", UnwatchChannel(channel: "room")), [("wes/1", "watching.changed signal")]),
        HeardOperation(
            "X-31 X-37 D-38 a user who is no longer shown as online goes to watchers",
            .by("bob/1", UpdatePreferences(sharesPresence: false)),
            [("bob", "preferences.updated user:bob"), ("wes/1", "presence.changed signal")]),
        HeardOperation(
            "SB-61 SB-62 a new name goes to members and watchers", .by("bob/1", UpdateMe(displayName: "x")),
            [("bob", "user.updated user:bob"), ("members wes/1", "users.changed signal")]),
        HeardOperation(
            "SB-61 SB-62 a former member's new name goes to users who have their messages",
            after: [.by("bob/1", LeaveChannel(channel: "room"))],
            .byAdmin("root", UpsertUser(user: "bob", avatarFileId: "bob.png")),
            [("bob", "user.updated user:bob"), ("ann oda cid wes/1", "users.changed signal")]),
        HeardOperation(
            "SB-61 the new name of a user who was never a member goes to nobody here", .by("sam/1", UpdateMe(displayName: "Sam")),
            [("sam", "user.updated user:sam")]),
        HeardOperation(
            "R38 an app's own signal goes to watchers, the sender's devices too",
            after: [.by("bob/2", WatchChannel(channel: "room"))], .by("bob/1", SendSignal(channel: "room", type: "wave")),
            [("bob/2 wes/1", "custom signal")]),
        HeardOperation(
            "ST-10 a non-member who stops watching gets nothing more", after: [.byAdmin("wes/1", UnwatchChannel(channel: "room"))],
            send(), [("members", "message.new channel:room")]),
        HeardOperation(
            "ST-10 a member who stops watching still gets messages",
            after: [.by("bob/1", WatchChannel(channel: "room")), .by("bob/1", UnwatchChannel(channel: "room"))],
            send(), [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "ST-01 a message goes once to a device that watches as a member", after: [.by("bob/1", WatchChannel(channel: "room"))],
            send(), [("members wes/1", "message.new channel:room")]),
        HeardOperation(
            "ST-08 a livestream's messages go to a stranger who watches", in: .livestream,
            after: [.by("sam/1", WatchChannel(channel: "room"))], send(), [("members sam/1 wes/1", "message.new channel:room")]),
    ]

    private static let typing: [HeardOperation] = [ChannelType.community, .group].flatMap { type in
        [
            HeardOperation(
                "SB-02 X-22 typing goes to members and watchers, but not to the typer's own devices", in: type,
                .by("bob/1", StartTyping(channel: "room")), [("ann oda cid wes/1", "typing.changed signal")]),
            HeardOperation(
                "SB-02 stopping without typing goes to nobody", in: type,
                .by("bob/1", StopTyping(channel: "room")), []),
            HeardOperation(
                "SB-02 an invited user isn't notified of typing, and may not type", in: type,
                .by("ida/1", StartTyping(channel: "room")), [], isRefused: true),
        ]
    }

    /// Makes an admin set who reads the channel.
    private static func reads(_ audience: ChannelPolicy.Audience) -> Step {
        var update = UpdateChannel(channel: "room")
        update.policy = PolicyChanges(read: audience)
        return .byAdmin("root", update)
    }

    private static let reading: [HeardOperation] = [
        HeardOperation(
            "R23 where operators read, members get a message's position", after: [reads(.operators)], send(),
            [("ann oda wes/1", "message.new channel:room"), ("bob cid", "message.new channel:room without its message")]),
        HeardOperation(
            "R23 where only members read, an admin who watched gets nothing", after: [reads(.membersOnly)], send(),
            [("members", "message.new channel:room")]),
        HeardOperation(
            "R23 AM-43 where owners read, the other senders learn that their own message isn't unread", after: [reads(.owners)],
            send("bob/1"),
            [
                ("ann wes/1", "message.new channel:room"), ("oda bob cid", "message.new channel:room without its message"),
                ("bob", "reading.marked user:bob"),
            ]),
        HeardOperation(
            "R23 where nobody reads, all members get positions", after: [reads(.nobody)], send(),
            [("members", "message.new channel:room without its message"), ("ann", "reading.marked user:ann")]),
        HeardOperation(
            "R23 a change of the policy itself goes to all members, regardless of who may read from then on", reads(.nobody),
            [("members", "channel.updated channel:room")]),
        HeardOperation(
            "R23 an operator made a member gets positions",
            after: [
                reads(.operators), .by("ann/1", SetMemberRole(channel: "room", users: ["oda"], role: .member)),
            ], send(), [("ann wes/1", "message.new channel:room"), ("oda bob cid", "message.new channel:room without its message")]),
    ]
}
