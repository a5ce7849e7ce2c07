/// Users mentioned by a message, or everyone in its channel (MN-04).
///
///     [.users(["ben", "ann"]), .channel]
public struct Mentionee: Codable, Hashable, Sendable {
    /// What is mentioned.
    public enum Kind: OpenWireEnumeration {
        /// The named users.
        case user
        /// Every member of the channel at the time of reading (MN-12).
        case channel
        /// A kind unknown to this version. It mentions nobody here, and servers don't accept it from this version.
        case unknown(String)

        public static let allCases: [Kind] = [.user, .channel]

        public var rawValue: String {
            switch self {
            case .user: "user"
            case .channel: "channel"
            case .unknown(let name): name
            }
        }
    }

    /// What is mentioned. At most one entry of a message has each type.
    public var type: Kind
    /// The users; nil or empty for the channel. An entry of the type user without users mentions nobody.
    public var users: [UserID]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(type: Kind, users: [UserID]? = nil) {
        self.type = type
        self.users = users
    }

    /// Mentions users.
    public static func users(_ users: [UserID]) -> Mentionee { Mentionee(type: .user, users: users) }

    /// Mentions the channel.
    public static let channel = Mentionee(type: .channel)
}

extension Mentionee: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("type", type)
        json.member("users", users)
        json.endObject()
    }
}

extension Mentionee: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var (type, users): (Kind?, [UserID]?)
        let isPlain = json.members { key, json in
            switch key {
            case "type": json.read(into: &type)
            case "users": json.read(into: &users)
            default: false
            }
        }
        guard isPlain, let type else { return nil }
        self.init(type: type, users: users)
    }
}

extension [Mentionee] {
    /// The users mentioned by name, each once, in the order of first mention.
    public var mentionedUsers: [UserID] {
        var seen: Set<UserID> = []
        return flatMap { $0.type == .user ? $0.users ?? [] : [] }.filter { seen.insert($0).inserted }
    }

    /// Whether the channel is mentioned.
    public var mentionsChannel: Bool { contains { $0.type == .channel } }

    /// Throws for more than two entries, two of one type, an unknown type, or an entry that names too many users.
    func validate() throws(RoostError) {
        for (index, entry) in enumerated() { try entry.type.validate(field: "mentionees[\(index)].type") }
        guard count <= Limits.mentionees else { throw .limitExceeded("mentionees", limit: Limits.mentionees, unit: "entries") }
        guard Set(map(\.type)).count == count else {
            throw RoostError(.mentionInvalid, "mentionees must not have two entries of one type.", field: "mentionees")
        }
        for entry in self {
            let users = entry.users ?? []
            switch entry.type {
            case .channel:
                guard users.isEmpty else {
                    throw RoostError(
                        .mentionInvalid, "mentionees must not name users with the type channel.", field: "mentionees")
                }
            case .user:
                guard users.count <= Limits.membersPerCall else {
                    throw .limitExceeded("mentionees", limit: Limits.membersPerCall, unit: "users")
                }
                for user in users { try user.validate(field: "mentionees") }
            case .unknown: break
            }
        }
    }
}
