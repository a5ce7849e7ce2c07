import Roost
import RoostAPI

/// Members and invitations in readable form. Text by others is made safe for a terminal.
enum MemberText {
    /// A list in columns.
    static func table(_ entries: [MemberEntry]) -> [String] {
        let rows = entries.map { entry in
            [
                entry.member.userId.rawValue.safe(), entry.member.role.rawValue, online(entry),
                MessageTime.moment(of: entry.member.joinedAt.date), entry.user?.displayName?.safe() ?? "-",
                states(of: entry).joined(separator: ", "),
            ]
        }
        return Output.table([["user", "role", "online", "since", "name", "state"]] + rows)
    }

    private static func online(_ entry: MemberEntry) -> String {
        entry.isOnline ? "now" : entry.lastActiveAt.map { MessageTime.moment(of: $0.date) } ?? "-"
    }

    private static func states(of entry: MemberEntry) -> [String] {
        [("muted", entry.mutedUntil), ("banned", entry.bannedUntil)].compactMap { word, until in
            until.map { $0 == .forever ? "\(word) forever" : "\(word) until \(MessageTime.moment(of: $0.date))" }
        }
    }

    /// Returns the result for each user, one line each: a single one as a sentence, several in columns.
    static func lines(of results: [MemberResult]) -> [String] {
        if results.count == 1, let result = results.first {
            let was = result.outcome == .refused ? "was " : ""
            return ["\(result.userId.rawValue.safe()) \(was)\(text(of: result))"]
        }
        return Output.table(results.map { [$0.userId.rawValue.safe(), text(of: $0)] })
    }

    private static func text(of result: MemberResult) -> String {
        switch result.outcome {
        case .added: "is now a member"
        case .removed: "is no longer a member"
        case .changed: "now has the role"
        case .invited: "is invited"
        case .withdrawn: "is no longer invited"
        case .alreadyMember: "is already a member"
        case .alreadyInvited: "is already invited"
        case .unchanged: "already has the role"
        case .notMember: "isn't a member"
        case .notInvited: "isn't invited"
        case .autoDeclined: "has reached the channel limit: declined"
        case .refused: result.error.map { "refused: \($0.summaryLine)" } ?? "refused"
        case .unknown(let outcome): "has the outcome \(outcome.safe()), which this version doesn't know"
        }
    }

    /// The caller's own invitations, with their channels.
    static func table(_ entries: [InvitationEntry], _ names: UserNames) -> [String] {
        let rows = entries.map { entry in
            [
                entry.channel.channelId.rawValue.safe(), entry.channel.displayName?.safe() ?? "-",
                names.nameWithID(of: entry.invitation.inviter),
                MessageTime.moment(of: entry.invitation.invitedAt.date), entry.invitation.welcome?.safe() ?? "-",
            ]
        }
        return Output.table([["channel", "name", "invited by", "when", "welcome"]] + rows)
    }

    /// The invitations to a channel.
    static func table(_ invitations: [Invitation], _ names: UserNames) -> [String] {
        let rows = invitations.map { invitation in
            [
                names.nameWithID(of: invitation.userId), names.nameWithID(of: invitation.inviter),
                MessageTime.moment(of: invitation.invitedAt.date), invitation.welcome?.safe() ?? "-",
            ]
        }
        return Output.table([["user", "invited by", "when", "welcome"]] + rows)
    }
}
