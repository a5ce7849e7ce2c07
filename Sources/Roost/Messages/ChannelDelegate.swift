public import RoostAPI

/// Receives the events of the user's channels: ``Chat/events`` for an app that is built on delegates (SB-46, EM-33).
///
/// A chat can have several, each with its own identifier. All methods have a default implementation that does nothing. They are called on the main
/// actor, in the order in which the events are stored, and never for events missed while the client was away: ``missedEvents(in:)`` is called once
/// for those.
@MainActor
public protocol ChannelDelegate: AnyObject {
    /// A message was sent, possibly by the user. `kind` distinguishes messages of people from those of admins (SB-47) and of the server.
    func channel(_ channel: ChannelID, received message: Message)
    /// A message was edited or restored.
    func channel(_ channel: ChannelID, updated message: Message)
    /// A message was deleted: its content has been removed.
    func channel(_ channel: ChannelID, deleted message: Message)
    /// A message was permanently deleted: only its place is left, which list rows have as their message's `seq`.
    func channel(_ channel: ChannelID, purged message: PurgedMessage)
    /// Something else has happened: see ``ChatEvent/Happening``.
    func channel(_ channel: ChannelID?, changed event: ChatEvent.Happening)
    /// Things happened in these channels that aren't sent as separate events (``ChatEvent/missed(after:)``).
    func missedEvents(in channels: [ChannelID: Seq])
}

extension ChannelDelegate {
    public func channel(_ channel: ChannelID, received message: Message) {}
    public func channel(_ channel: ChannelID, updated message: Message) {}
    public func channel(_ channel: ChannelID, deleted message: Message) {}
    public func channel(_ channel: ChannelID, purged message: PurgedMessage) {}
    public func channel(_ channel: ChannelID?, changed event: ChatEvent.Happening) {}
    public func missedEvents(in channels: [ChannelID: Seq]) {}

    fileprivate func take(_ event: ChatEvent) {
        guard case .happened(let happening) = event else {
            if case .missed(let channels) = event { missedEvents(in: channels) }
            return
        }
        if let channel = happening.channel, let purged = happening.purged { return self.channel(channel, purged: purged) }
        guard let channel = happening.channel, let message = happening.message else {
            return self.channel(happening.channel, changed: happening)
        }
        switch happening.kind {
        case .messageNew: self.channel(channel, received: message)
        case .messageUpdated, .messageUndeleted: self.channel(channel, updated: message)
        case .messageDeleted: self.channel(channel, deleted: message)
        default: self.channel(channel, changed: happening)
        }
    }
}

extension Chat {
    /// Adds a delegate, replacing one with the same identifier.
    ///
    /// It isn't retained: once the app releases it, it is no longer called, even if it wasn't removed. It is called on the main actor; code that runs
    /// elsewhere reads ``Chat/events``.
    @MainActor public func add(_ delegate: any ChannelDelegate, identifier: String) {
        let events = events
        delegates[identifier] = ObservationToken(
            task: Task { [weak delegate] in
                for await event in events {
                    guard !Task.isCancelled, let delegate else { return }
                    delegate.take(event)
                }
            })
    }

    /// Removes a delegate, which is no longer called. Does nothing if there is none with that identifier.
    @MainActor public func removeDelegate(identifier: String) { delegates[identifier] = nil }

    /// Removes all delegates.
    @MainActor public func removeAllDelegates() { delegates = [:] }
}
