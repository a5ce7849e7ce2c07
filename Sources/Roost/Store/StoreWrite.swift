import RoostAPI

/// One change of the cache. Writing it twice has the same effect as writing it once, except for `count`.
enum StoreWrite: Hashable, Sendable {
    /// Deletes everything: later writes belong to another history.
    case erase(epoch: String)
    case userPosition(Seq)
    /// The user's role in the app, with which everything is fetched.
    case appRole(AppRole?)
    /// A channel's position at its start, with the range of its cached messages.
    case position(ChannelID, Position)
    /// Advances the position. What is cached stays: another chat of the same files may have added to it. The position of a visit advances with the
    /// chat that holds it (``SharedVisits``).
    case advance(ChannelID, Position)
    /// Adds a range to what is cached: all its messages are stored.
    case page(ChannelID, ClosedRange<Seq>)
    /// Forgets a channel's messages and members, to start over.
    case forget(ChannelID)
    /// Forgets the stretches of a channel's messages that reach into a range, and the rows about them. What belongs to the newest ones stays.
    case forgetMessages(ChannelID, ClosedRange<Seq>)
    /// Forgets what only members know of a channel, including its position.
    case leave(ChannelID)
    /// Starts over a channel that is followed only while it is watched, unless another open chat of the same files has got as far.
    case visit(ChannelID, Position)
    /// Forgets such a channel's messages and its position, unless another open chat holds it.
    case endVisit(ChannelID)
    /// Ends all visits of the writing chat, except those of these channels: the end of an earlier one may not have been written.
    case keepVisits(Set<ChannelID>)
    /// Replaces a channel; its counters only by newer ones. Held by reference: otherwise each copy of a list of writes would copy all of its fields.
    indirect case channel(Channel)
    case counters(ChannelID, ChannelCounters)
    /// Adds new messages to their channel's counters, unless the counters are already as recent.
    case add(Rows, to: ChannelID)
    /// Saves rows of features, replacing older ones as each kind defines (``CachedRow``).
    case rows(Rows, of: StreamID)
    /// The same for rows about messages, if these are cached.
    case rowsOfCached(Rows, in: ChannelID)
    /// Saves users' summaries, replacing older versions.
    case users([UserSummary])
    /// Counts as read the messages in rows that aren't unread for the user (``Membership/counting(_:as:)``).
    case count(ChannelID, Rows)
    /// Replaces the user's permissions in a channel, unless newer ones are stored.
    case capabilities(ChannelID, Capabilities.Own)
    /// The same for all members, by role.
    case roleCapabilities(ChannelID, Capabilities.ByRole)

    /// Sets what is shown over the server's rows of a channel, or of none; nil removes it.
    case overlay(ChannelID?, Overlay?)
    /// Removes the overlays of all channels but these.
    case keepOverlays(Set<ChannelID?>)

    /// The channel that live objects must reread.
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
