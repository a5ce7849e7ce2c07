public import RoostAPI

/// One row of a channel list.
public struct ChannelItem: Identifiable, Hashable, Sendable {
    let row: ChannelRow

    /// The channel with its attributes and counters.
    public var channel: Channel { row.view.channel }
    /// The user's membership, current or former; nil if they never were a member.
    public var membership: Membership? { row.view.membership }
    /// The user's pending invitation.
    public var invitation: Invitation? { row.view.invitation }
    /// The newest message on this device.
    public var lastMessage: Message? { row.view.lastMessage }
    /// The sender of ``lastMessage``, as this device knows them: only the id until their name arrives.
    public var lastSender: UserSummary? { row.sender }
    /// The sender of ``invitation``, likewise.
    public var inviter: UserSummary? { row.inviter }
    /// Messages that the user hasn't read (AM-43); 0 for non-members.
    public var unreadCount: Int { row.view.unreadCount }
    /// Whether an unread message mentions the user, by name or with the whole channel (MN-16).
    public var hasMention: Bool { row.view.hasMention }
    /// Whether the user hid the channel (SB-29).
    public var hiddenState: HiddenState { row.view.hiddenState }
    /// Whether the user has muted the channel for themselves (D-29): totals leave it out.
    public var isNotificationsMuted: Bool { membership?.isNotificationsMuted ?? false }
    /// The user's permissions in the channel (AM-48). A permission that returns with the end of a silence or a mute may appear only once the channel
    /// changes or has been opened: ``LiveChannel`` asks for it.
    public var ownCapabilities: [Permission] { row.view.ownCapabilities }

    /// The channel's id.
    public var id: ChannelID { row.view.channel.channelId }

    /// A row for previews and tests of an app's views: lists make their rows themselves.
    ///
    /// - Parameters:
    ///   - view: What it shows. Nothing in it is checked or completed.
    ///   - lastSender: The sender of the newest message; if nil, only their id is known.
    ///   - inviter: The sender of the invitation; likewise.
    public init(_ view: ChannelView, lastSender: UserSummary? = nil, inviter: UserSummary? = nil) {
        row = ChannelRow(
            view, sender: view.lastMessage.map { lastSender ?? UserSummary(userId: $0.sender) },
            inviter: view.invitation.map { inviter ?? UserSummary(userId: $0.inviter) })
    }

    init(_ row: ChannelRow) { self.row = row }

    /// - Parameter users: The users whose summaries are known.
    init(_ view: ChannelView, _ users: [UserID: UserSummary], now: Timestamp) {
        var view = view
        view.channel.updateTimedStates(at: now)
        func user(_ id: UserID?) -> UserSummary? { id.map { users[$0] ?? UserSummary(userId: $0) } }
        row = ChannelRow(view, sender: user(view.lastMessage?.sender), inviter: user(view.invitation?.inviter))
    }
}
