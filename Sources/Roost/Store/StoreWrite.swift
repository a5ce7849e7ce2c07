import RoostAPI

/// One change of the cache. Writing it twice is the same as writing it once, but for `count`.
enum StoreWrite: Hashable, Sendable {
    /// Deletes everything: later writes belong to another history.
    case erase(epoch: String)
    case userPosition(Seq)
    /// The user's role in the app that everything is fetched with.
    case appRole(AppRole?)
    /// A channel's position where it begins, with what is cached of its messages.
    case position(ChannelID, Position)
    /// Moves the position on. What is cached stays: another chat of the same files may have added to it. The position of a visit moves with the chat that it is
    /// of (``SharedVisits``).
    case advance(ChannelID, Position)
    /// Adds a range of which all messages are stored to what is cached.
    case page(ChannelID, ClosedRange<Seq>)
    /// Forgets a channel's messages and members, to begin afresh.
    case forget(ChannelID)
    /// Forgets the stretches of a channel's messages that reach into a range, and what is about them. What belongs to the newest ones stays.
    case forgetMessages(ChannelID, ClosedRange<Seq>)
    /// Forgets what only members know of a channel, its position too.
    case leave(ChannelID)
    /// Begins afresh a channel of others that is followed only as long as it is watched, unless another open chat of the same files has it as far as that.
    case visit(ChannelID, Position)
    /// Forgets such a channel's messages, and its position, unless it is that of another chat that is open.
    case endVisit(ChannelID)
    /// Ends all visits of the chat that writes, but for those of these channels: that of one that ended may not have been written.
    case keepVisits(Set<ChannelID>)
    /// Replaces a channel; its counters only by newer ones. It is held by reference, or each copy of a list of writes would copy all of its fields.
    indirect case channel(Channel)
    case counters(ChannelID, ChannelCounters)
    /// Adds new messages to their channel's counters, unless these are those of that moment or later.
    case add(Rows, to: ChannelID)
    /// Puts rows of features in the place of older ones, as each kind says (``CachedRow``).
    case rows(Rows, of: StreamID)
    /// The same of rows about messages, where these are cached.
    case rowsOfCached(Rows, in: ChannelID)
    /// Puts what lists show of users in the place of older versions.
    case users([UserSummary])
    /// Counts as read what rows bring that isn't unread for the user (``Membership/counting(_:as:)``).
    case count(ChannelID, Rows)
    /// Replaces the user's permissions in a channel, unless newer ones are stored.
    case capabilities(ChannelID, Capabilities.Own)
    /// The same for all members, by role.
    case roleCapabilities(ChannelID, Capabilities.ByRole)

    /// Sets what is shown over the server's rows of a channel, or of none; nil for nothing.
    case overlay(ChannelID?, Overlay?)
    /// Removes the overlays of all channels but these.
    case keepOverlays(Set<ChannelID?>)

    /// The channel that live objects must read again.
    var channel: ChannelID? {
        switch self {
        case .erase, .userPosition, .appRole, .users, .rows(_, of: .user), .keepOverlays, .keepVisits: nil
        case .overlay(let channel, _): channel
        case .position(let channel, _), .advance(let channel, _), .page(let channel, _), .forget(let channel), .leave(let channel),
            .visit(let channel, _), .endVisit(let channel), .forgetMessages(let channel, _), .counters(let channel, _),
            .rowsOfCached(_, let channel),
            .rows(_, of: .channel(let channel)), .capabilities(let channel, _), .roleCapabilities(let channel, _),
            .count(let channel, _), .add(_, let channel):
            channel
        case .channel(let channel): channel.channelId
        }
    }
}
