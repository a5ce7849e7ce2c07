import RoostAPI

extension Permissions {
    /// The reason for refusing a permission. Its message is only built where it is thrown: the capabilities of a user in a
    /// channel ask for some forty permissions at once, most of which an ordinary member doesn't have.
    enum Refusal {
        case notFound
        case notForGuests
        case notMember
        case notInvited
        case inviteRequired
        case deleted
        case frozen
        case needsAdmin
        case needsRole
        case banned(until: Timestamp)
        case silenced(until: Timestamp?)
        case muted(until: Timestamp)
        /// Another reason, phrased to follow the permission's name.
        case notPermitted(StaticString)
        /// A rule of the channel's type, phrased to follow the permission's name.
        case kindForbids(StaticString)
        /// The only users who may send.
        case sendNotAllowed(StaticString)

        func error(of permission: Permission, in type: ChannelType?) -> RoostError {
            let name = permission.rawValue
            switch self {
            case .notFound: return .notFound("channel")
            case .notForGuests: return Self.notPermitted(name, "isn't for guests")
            case .needsAdmin: return Self.notPermitted(name, "needs an admin's token")
            case .needsRole: return Self.notPermitted(name, "needs a role that grants it")
            case .notPermitted(let reason): return Self.notPermitted(name, "\(reason)")
            case .notMember:
                return RoostError(.notMember, "\(name) is for members of the channel.", rule: "\(name) is for members")
            case .notInvited:
                return RoostError(
                    .notInvited, "You have no invitation to the channel.", rule: "invitation.answer needs an invitation")
            case .inviteRequired:
                return RoostError(
                    .inviteRequired, "The channel is private: you need an invitation.", rule: "member.join needs an invitation")
            case .deleted:
                return RoostError(.notPermitted, "The channel is deleted.", rule: "\(name): not in a deleted channel")
            case .frozen: return RoostError(.frozen, "The channel is frozen.", rule: "\(name): not while frozen")
            case .banned(let until):
                return RoostError(.banned, "You are banned from the channel.", rule: "\(name): not while banned", until: until)
            case .silenced(let until):
                return RoostError(.channelMuted, "The channel is silenced.", rule: "\(name): not while silenced", until: until)
            case .muted(let until):
                return RoostError(.muted, "You are muted in the channel.", rule: "\(name): not while muted", until: until)
            case .kindForbids(let reason):
                let type = type?.rawValue ?? "this"
                return RoostError(
                    .kindForbids, "\(name) \(reason) in channels of the type \(type).", rule: "\(name) in \(type) \(reason)")
            case .sendNotAllowed(let who):
                return RoostError(.sendNotAllowed, "Only \(who) can send in this channel.", rule: "message.send is for \(who)")
            }
        }

        private static func notPermitted(_ name: String, _ reason: String) -> RoostError {
            RoostError(.notPermitted, "\(name) \(reason).", rule: "\(name) \(reason)")
        }
    }
}

extension RoostError {
    /// The same refusal with the time that is left of it, if it ends by itself: a client can wait for that without knowing the server's clock.
    func withRest(at now: Timestamp) -> RoostError {
        guard let until, until < .forever else { return self }
        var refusal = self
        refusal.retryAfterMilliseconds = max(0, until.milliseconds - now.milliseconds)
        return refusal
    }
}
