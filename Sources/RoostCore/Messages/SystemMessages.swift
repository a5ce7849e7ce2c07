import RoostAPI

/// The messages that the server itself sends about a channel, as its policy prescribes (R19).
extension Context {
    /// Sends one about a change that the caller has just made.
    ///
    /// - Parameter access: The channel after the change, and afterwards with the message.
    mutating func announce(_ event: SystemEvent, in access: inout ChannelAccess) throws {
        guard access.policy.announces(event.kind),
            access.policy.announcesInLargeChannels || access.counters.memberCount <= Limits.largeChannelMembers
        else { return }
        let content = MessageContent(event, text: try text(of: event))
        // An id that no client can send: a client that did would be answered with the server's message, and its own wouldn't be stored.
        let clientId = ClientID("system/\(ids.next(at: now))")
        guard try add(content, clientId, mentioning: Mentions(), in: &access) != nil else {
            throw ImpossibleState("The server already has a message with the new id \(clientId).")
        }
    }

    /// Describes the event, with the current names.
    private func text(of event: SystemEvent) throws -> String {
        let shown = event.users.prefix(3)
        var names: [UserID: String] = [:]
        for user in try summaries(of: Set(shown + [caller.user])) ?? [] { names[user.userId] = user.displayName }
        func name(of user: UserID) -> String { names[user] ?? user.rawValue }
        let actor = name(of: caller.user)
        var all = shown.map(name)
        if event.userCount > all.count {
            all.append(event.userCount == all.count + 1 ? "1 other" : "\(event.userCount - all.count) others")
        }
        let users = all.count < 2 ? all.joined() : "\(all.dropLast().joined(separator: ", ")) and \(all.last ?? "")"
        let isOwn = event.users == [caller.user]
        return switch event.kind {
        case .memberJoined: isOwn ? "\(actor) joined." : "\(actor) added \(users)."
        case .memberLeft: isOwn ? "\(actor) left." : "\(actor) removed \(users)."
        case .channelRenamed:
            event.displayName.map { "\(actor) named the channel \u{201C}\($0)\u{201D}." } ?? "\(actor) removed the channel's name."
        }
    }
}

extension ChannelPolicy {
    fileprivate func announces(_ kind: SystemEvent.Kind) -> Bool {
        switch kind {
        case .memberJoined: announcesJoins
        case .memberLeft: announcesLeaves
        case .channelRenamed: announcesNames
        }
    }
}
