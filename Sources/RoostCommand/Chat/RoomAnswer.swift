import Roost
import RoostAPI

/// The result of a command for a room: its output, and the user's room afterwards.
struct RoomAnswer: Sendable {
    /// A single line is a confirmation; several are a list.
    var lines: [String]
    /// The parts of the command that failed, and why; the rest may have been done.
    var refusals: [String] = []
    /// The channel to enter.
    var enters: ChannelID?

    init(_ lines: [String], refusals: [String] = [], enters: ChannelID? = nil) {
        (self.lines, self.refusals, self.enters) = (lines, refusals, enters)
    }
    init(_ line: String, enters: ChannelID? = nil) { self.init([line], enters: enters) }
}

/// The commands for channels and members, the same on a screen and in lines.
extension Room {
    /// - Throws: A `RoostError` if the server refuses.
    func carryOut(_ command: RoomCommand) async throws -> RoomAnswer {
        switch command {
        case .join(let id): entered(try await joined(id))
        case .create(let id, let type, let users):
            try await create(CreateChannel(channel: id, type: type, users: users.isEmpty ? nil : users))
        case .invite(let users, let welcome): try await invite(users, welcome: welcome)
        case .invitations: try await invitations()
        case .accept(let id):
            try await withInvitation(into: id, "/accept") { entered(try await self.chat.call(AcceptInvitation(channel: $0))) }
        case .decline(let id):
            try await withInvitation(into: id, "/decline") {
                _ = try await self.chat.call(DeclineInvitation(channel: $0))
                return RoomAnswer("you declined the invitation into #\($0.rawValue.safe())")
            }
        case .members: try await members()
        case .who: try await who()
        case .devices: try await devices()
        case .list(let hidden): try await list(hidden: hidden)
        case .hide(let archive, let clear): try await hide(archive: archive, clear: clear)
        case .mentions: try await mentions()
        case .status(let text):
            try await confirm(text.isEmpty ? "your status is removed" : "your status is shown beside your name") {
                try await $0.chat.updateMe(status: text)
            }
        case .reset:
            // As a direct call: through the outbox it would be confirmed before the server has accepted it.
            try await confirm("your history of #\(name) begins now") {
                _ = try await $0.chat.call(ResetHistory(channel: $0.channel.id))
            }
        case .mute(let seconds): try await mute(seconds: seconds)
        case .unmute:
            try await confirm("#\(name) is counted in your total again") {
                _ = try await $0.chat.call(UnmuteNotifications(channel: $0.channel.id))
            }
        case .unhide:
            try await confirm("#\(name) is in your list again") {
                _ = try await $0.chat.call(UnhideChannel(channel: $0.channel.id))
            }
        case .leave:
            try await confirm(absence) {
                _ = try await $0.chat.call(LeaveChannel(channel: $0.channel.id))
            }
        }
    }

    /// The text for a former member.
    var absence: String { "you are no longer a member of #\(name); /list shows your channels, /join ID opens one" }

    private var name: String { channel.id.rawValue.safe() }

    private func confirm(_ line: String, after action: (Room) async throws -> Void) async throws -> RoomAnswer {
        try await action(self)
        return RoomAnswer(line)
    }

    private func entered(_ view: ChannelView) -> RoomAnswer {
        let count = view.channel.counters.memberCount
        return RoomAnswer(
            "you are in #\(view.channel.channelId.rawValue.safe()): \(view.channel.type.rawValue), \(count) \(count == 1 ? "member" : "members")",
            enters: view.channel.channelId)
    }

    private func create(_ operation: CreateChannel) async throws -> RoomAnswer {
        do { return entered(try await chat.call(operation)) } catch let error as RoostError { throw error.namingCommands }
    }

    // MARK: Members

    private func members() async throws -> RoomAnswer {
        let page = try await chat.call(ListMembers(channel: channel.id, limit: Limits.memberPage.max))
        let rows = page.items.map { entry in
            [
                entry.isOnline ? "●" : "○", Self.name(of: entry), entry.member.role.rawValue,
                entry.lastActiveAt.map { "last online \(MessageTime.moment(of: $0.date))" } ?? "", entry.user?.status?.safe() ?? "",
            ]
        }
        return RoomAnswer(
            ["Members of #\(name), ● online:"] + Output.table(rows)
                + (page.nextCursor == nil ? [] : ["… and more: roost members list shows all"]))
    }

    private func who() async throws -> RoomAnswer {
        let page = try await chat.call(ListMembers(channel: channel.id, limit: Limits.memberPage.max))
        let watched = try await chat.call(WatchChannel(channel: channel.id, limit: 1))
        let watching = try await chat.call(ListWatchers(channel: channel.id, limit: Limits.watcherPage.max))
        let online = page.items.filter(\.isOnline).map(Self.name(of:))
        let watchers = watching.watchers.sorted { $0.userId < $1.userId }.map { Self.name(of: $0) }
        return RoomAnswer([
            Self.counted(watched.online, "member online", "members online", online),
            Self.counted(watching.watcherCount, "viewing #\(name)", "viewing #\(name)", watchers),
        ])
    }

    /// `3 members online: Ann (ann), bob and 1 more`
    private static func counted(_ count: Int, _ one: String, _ many: String, _ names: [String]) -> String {
        let more = count > names.count && !names.isEmpty ? " and \(count - names.count) more" : ""
        return "\(count) \(count == 1 ? one : many)" + (names.isEmpty ? "" : ": " + names.joined(separator: ", ") + more)
    }

    private static func name(of entry: MemberEntry) -> String {
        entry.user.map { name(of: $0.summary) } ?? entry.member.userId.rawValue.safe()
    }

    /// The display name with the id, which is what commands accept.
    private static func name(of user: UserSummary) -> String {
        let id = user.userId.rawValue.safe()
        guard let name = user.displayName?.safe(), !name.isEmpty, name != id else { return id }
        return "\(name) (\(id))"
    }

    // MARK: Devices

    private func devices() async throws -> RoomAnswer {
        let rows = try await chat.devices().map { device in
            [
                device.name?.safe() ?? "", device.platform?.safe() ?? "", device.deviceId.rawValue.safe(),
                MessageTime.moment(of: device.lastUsedAt.date), device.isCurrent ? "this one" : "",
            ]
        }
        return RoomAnswer(
            rows.isEmpty ? ["none of your devices has identified itself"] : ["Your devices, last used:"] + Output.table(rows))
    }

    // MARK: Channels

    private func list(hidden: Bool) async throws -> RoomAnswer {
        let page = try await chat.call(QueryChannels(hidden: hidden ? .hiddenOnly : nil, limit: Limits.channelPage.max))
        guard !page.items.isEmpty else {
            return RoomAnswer(hidden ? "you have no hidden channels" : "you have no channels; /create ID makes one")
        }
        let rows = page.items.map { view in
            [
                (view.channel.channelId == channel.id ? "> #" : "  #") + view.channel.channelId.rawValue.safe(),
                [
                    view.unreadCount == 0 ? nil : "\(view.unreadCount) unread",
                    view.membership?.isNotificationsMuted == true ? "muted" : nil,
                ]
                .compactMap { $0 }.joined(separator: ", "), view.channel.displayName?.safe() ?? "",
            ]
        }
        return RoomAnswer(
            [hidden ? "Your hidden channels:" : "Your channels, the newest message first:"] + Output.table(rows)
                + (page.nextCursor == nil ? [] : ["… and more: roost channels list shows all"]))
    }

    private func mute(seconds: Int?) async throws -> RoomAnswer {
        let membership = try await chat.call(MuteNotifications(channel: channel.id, seconds: seconds))
        let until = membership.notificationsMutedUntil.flatMap { $0 == .forever ? nil : MessageTime.moment(of: $0.date) }
        return RoomAnswer("#\(name) is muted: it isn't counted in your total until \(until ?? "/unmute")")
    }

    private func hide(archive: Bool, clear: Bool) async throws -> RoomAnswer {
        _ = try await chat.call(
            HideChannel(channel: channel.id, hidePreviousMessages: clear, allowAutoUnhide: !archive))
        let until = archive ? "until you type /unhide" : "until its next message"
        return RoomAnswer("#\(name) is hidden from your list \(until)" + (clear ? "; earlier messages are hidden for you" : ""))
    }

    // MARK: Mentions

    private func mentions() async throws -> RoomAnswer {
        let byName = try await chat.mentions(limit: 20)
        // Mentions of a whole channel are listed only for that channel, which a user who has left it can no longer read.
        let here = channel.hasPermission(.historyRead) ? try await channel.mentions(limit: 20) : Page(items: [])
        let known = Set(byName.items.map(\.messageId))
        let all = (byName.items + here.items.filter { !known.contains($0.messageId) }).sorted { $0.createdAt > $1.createdAt }
        guard !all.isEmpty else { return RoomAnswer("nobody has mentioned you") }
        let names = UserNames((byName.users ?? []) + (here.users ?? []))
        let hasMore = all.count > 20 || byName.nextCursor != nil || here.nextCursor != nil
        let rows = all.prefix(20).map { message in
            [
                "#\(message.channelId.rawValue.safe())", "\(message.messageId)", MessageTime.moment(of: message.createdAt.date),
                names.name(of: message.sender), message.text.safe(),
            ]
        }
        return RoomAnswer(
            ["Who mentioned you; /goto MESSAGE shows one of this channel:"] + Output.table(rows)
                + (hasMore ? ["… and more: roost messages mentions shows all"] : []))
    }

    // MARK: Invitations

    private func invite(_ users: [UserID], welcome: String?) async throws -> RoomAnswer {
        let results = try await chat.call(InviteMembers(channel: channel.id, users: users, welcome: welcome)).results
        return RoomAnswer(
            MemberText.lines(of: results.filter { $0.outcome != .refused }),
            refusals: MemberText.lines(of: results.filter { $0.outcome == .refused }))
    }

    private func invitations() async throws -> RoomAnswer {
        let page = try await chat.call(ListMyInvitations(limit: Limits.memberPage.max))
        guard !page.items.isEmpty else { return RoomAnswer("you have no pending invitations") }
        return RoomAnswer(
            ["/accept ID or /decline ID answers:"] + page.items.map { Self.line(of: $0, UserNames(page.users)) }
                + (page.nextCursor == nil ? [] : ["… and more"]))
    }

    private static func line(of entry: InvitationEntry, _ names: UserNames) -> String {
        let name = entry.channel.displayName.map { " (\($0.safe()))" } ?? ""
        let welcome = entry.invitation.welcome.map { ": \($0.safe())" } ?? ""
        return
            "#\(entry.channel.channelId.rawValue.safe())\(name), from \(names.nameWithID(of: entry.invitation.inviter))\(welcome)"
    }

    /// Answers the invitation to a channel, or the only pending one.
    private func withInvitation(
        into id: ChannelID?, _ command: String, answer: (ChannelID) async throws -> RoomAnswer
    ) async throws -> RoomAnswer {
        if let id { return try await answer(id) }
        let page = try await chat.call(ListMyInvitations(limit: Limits.memberPage.max))
        guard let first = page.items.first else { return RoomAnswer([], refusals: ["you have no pending invitations"]) }
        guard page.items.count == 1 else {
            let names = UserNames(page.users)
            return RoomAnswer([], refusals: ["Which one? \(command) ID"] + page.items.map { Self.line(of: $0, names) })
        }
        return try await answer(first.channel.channelId)
    }
}
