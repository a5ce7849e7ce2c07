import RoostAPI

/// What a user may see of a channel, the ways in which that ends, and the paths on which it must have ended: everything that
/// ``RightsWalkTests`` walks, and why some combinations are left out.
enum RightsWalk {
    /// A part of a channel that not everybody sees, with the permissions that show it.
    enum Right: String, CaseIterable, Sendable {
        /// Messages as they are sent.
        case history
        /// Changes of earlier messages: a history floor hides only these.
        case earlierHistory
        /// The channel itself with its attributes. A user who may not know of it gets none of them.
        case attributes
        case members, muted, banned
        /// Invitations of others; users always see their own.
        case invitations
        /// How far others have read.
        case readPositions
        /// The user's own unread count.
        case unread
        /// Earlier versions of edited messages.
        case versions

        var permissions: [Permission] {
            switch self {
            case .history, .earlierHistory: [.historyRead]
            case .attributes: [.channelRead]
            case .members: [.memberList]
            case .muted: [.memberListMuted]
            case .banned: [.memberListBanned, .memberSearchBanned]
            case .invitations: [.invitationList]
            case .readPositions: [.channelWatch]
            case .unread: [.readingMark]
            case .versions: [.messageReadVersions]
            }
        }

        /// The text that identifies it in an answer: from before the right ended, or from after it.
        func mark(_ age: Age) -> String {
            switch self {
            case .readPositions: #""lastReadAt""#
            case .unread: #""unreadCount""#
            default: "\(age.rawValue)-\(rawValue)"
            }
        }
    }

    enum Age: String, CaseIterable, Sendable {
        case old, new
    }

    /// Where an answer comes from.
    enum Path: String, CaseIterable, Sendable {
        /// The events that reach a socket opened before.
        case live
        /// A resume of a client that was away, from a position before the change.
        case resume
        /// The changes of the one stream, likewise.
        case changes
        /// A repeated call: of a message with its client id, of a creation with its idempotency key.
        case repeated
        /// `GET` of a single item.
        case single
        /// `GET` of a list, also from an earlier cursor.
        case page
        /// `GET` of the messages that mention the user, in all channels.
        case mentions
        case watch
    }

    /// A user's standing in the channel before the change.
    enum Standing: Sendable {
        case member
        /// A member with the role `operator`, or with one of the app's own roles that shows as much.
        case `operator`, guide
        /// A non-member who watches a channel that everyone may read.
        case watcher
        case invited
    }

    enum Way: String, CaseIterable, Sendable {
        case policy, typeSettings, leaving, removal, ban, deactivation, revocation, hidingOfTheHistory
        case loweredRole, changedRole, deletedRole
        case policyForOthers, typeSettingsForOthers, endOfDiscovery, endOfPublicity, deletion
        case withdrawal, decline

        var standing: Standing {
            switch self {
            case .policy, .typeSettings, .leaving, .removal, .ban, .deactivation, .revocation, .hidingOfTheHistory: .member
            case .loweredRole: .operator
            case .changedRole, .deletedRole: .guide
            case .policyForOthers, .typeSettingsForOthers, .endOfDiscovery, .endOfPublicity, .deletion: .watcher
            case .withdrawal, .decline: .invited
            }
        }

        /// The rights that it ends. Everything else stays.
        var ends: Set<Right> {
            switch self {
            case .policy, .typeSettings, .policyForOthers, .typeSettingsForOthers: [.history, .earlierHistory]
            case .hidingOfTheHistory: [.earlierHistory]
            case .loweredRole, .changedRole, .deletedRole: [.history, .earlierHistory, .muted, .banned, .versions]
            case .leaving, .removal, .ban, .deactivation, .revocation, .endOfDiscovery, .endOfPublicity, .deletion, .withdrawal,
                .decline:
                Set(Right.allCases)
            }
        }
    }

    /// One place of the walk.
    struct Cell: Hashable, CustomStringConvertible, Sendable {
        let way: Way
        let right: Right
        let path: Path

        var description: String { "\(right.rawValue), \(path.rawValue), by \(way.rawValue)" }

        /// Every combination of a way that isn't left out.
        static func all(of way: Way) -> [Cell] {
            Right.allCases.flatMap { right in Path.allCases.map { Cell(way: way, right: right, path: $0) } }
                .filter { $0.reasonLeftOut == nil }
        }

        /// Whether the right is kept.
        var isKept: Bool {
            if way.ends.contains(right) { return false }
            return !(isForReaders && way.ends.contains(.history))
        }

        /// Watching is for readers, and so are the list of readers and, for non-members, a channel's stream.
        private var isForReaders: Bool {
            path == .watch || right == .readPositions || (way.standing == .watcher && (path == .live || path == .changes))
        }

        /// Why the cell is left out; nil for all other cells.
        var reasonLeftOut: String? { reasonOfPath ?? reasonOfStanding ?? reasonOfWay }

        /// Reasons of paths that show the right to nobody.
        private var reasonOfPath: String? {
            switch (right, path) {
            case (.members, .repeated): "neither a message nor a channel has the members"
            case (.muted, .page), (.banned, .page): nil
            case (.muted, _), (.banned, _): "only lists have who is muted or banned"
            case (.invitations, .repeated), (.invitations, .single), (.invitations, .watch):
                "a channel is shown with the caller's own invitation alone"
            case (.readPositions, .watch), (.readPositions, .page), (.unread, .single): nil
            case (.readPositions, _): "only the answer to a watch and the list of readers have the read positions of others"
            case (.unread, _): "rows have the caller's own membership, which stays the caller's"
            case (.versions, .single), (.history, .mentions), (.earlierHistory, .mentions): nil
            case (.versions, _): "only one operation has earlier versions of messages"
            case (_, .mentions): "the list has messages and their users"
            default: nil
            }
        }

        /// Reasons of standings that never had the right.
        private var reasonOfStanding: String? {
            switch (way.standing, right, path) {
            case (.member, .muted, _), (.member, .banned, _), (.member, .versions, _): "it is for operators"
            case (.watcher, _, .resume): "a resume has the caller's own channels"
            case (.watcher, _, .mentions): "only members are mentioned"
            case (.watcher, .muted, _), (.watcher, .banned, _), (.watcher, .versions, _): "it is for operators"
            case (.watcher, .invitations, _), (.watcher, .unread, _): "it is for members"
            case (.invited, .attributes, .single), (.invited, .attributes, .page), (.invited, .attributes, .repeated): nil
            case (.invited, _, _): "an invitation shows the channel's summary, and opens none of its streams"
            default: nil
            }
        }

        private var reasonOfWay: String? {
            way == .deletion && path == .live ? "nothing happens in a deleted channel" : nil
        }
    }
}
