/// A user as shown in lists: the name, the picture and the status.
///
/// Responses with rows that name users also carry those users, each once. Events name users by their ids alone.
public struct UserSummary: Codable, Hashable, Sendable {
    /// The user's id.
    public var userId: UserID
    /// The display name; nil if they have none.
    public var displayName: String?
    /// The id of the app's file with the picture.
    public var avatarFileId: String?
    /// The user's current status text; nil if they have none.
    public var status: String?
    /// The version of the profile (``User/version``): of two summaries of one user, the one with the higher version is newer. 0 for a user
    /// known only by id.
    public var version: Int64 = 0  // wire: may be absent

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        userId: UserID, displayName: String? = nil, avatarFileId: String? = nil, status: String? = nil, version: Int64 = 0
    ) {
        self.userId = userId
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.status = status
        self.version = version
    }
}

extension UserSummary: Identifiable {
    /// ``userId``.
    public var id: UserID { userId }

    /// The name to show: the display name, or the id if there is none or it hasn't arrived yet.
    public var name: String { displayName.flatMap { $0.isEmpty ? nil : $0 } ?? userId.rawValue }
}

extension UserSummary {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case userId, displayName, avatarFileId, status, version
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(userId, forKey: .userId)
        try container.encodeIfPresent(displayName, forKey: .displayName)
        try container.encodeIfPresent(avatarFileId, forKey: .avatarFileId)
        try container.encodeIfPresent(status, forKey: .status)
        try container.encode(version, forKey: .version)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        userId = try container.decode(UserID.self, forKey: .userId)
        displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        status = try container.decodeIfPresent(String.self, forKey: .status)
        version = try container.decodeIfPresent(Int64.self, forKey: .version) ?? 0
    }
}

extension UserSummary: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("displayName", displayName)
        json.member("avatarFileId", avatarFileId)
        json.member("status", status)
        json.member("version", version)
        json.endObject()
    }
}

extension UserSummary: PlainReadable {
    // derived: init(plainly:)
    package init?(plainly json: inout PlainJSON) {
        var (userId, displayName, avatarFileId, status, version): (UserID?, String?, String?, String?, Int64?)
        let isPlain = json.members { key, json in
            switch key {
            case "userId": json.read(into: &userId)
            case "displayName": json.read(into: &displayName)
            case "avatarFileId": json.read(into: &avatarFileId)
            case "status": json.read(into: &status)
            case "version": json.read(into: &version)
            default: json.pass() != nil
            }
        }
        guard isPlain, let userId else { return nil }
        self.init(userId: userId, displayName: displayName, avatarFileId: avatarFileId, status: status, version: version ?? 0)
    }
}

extension User {
    /// The user as shown in lists.
    public var summary: UserSummary {
        UserSummary(
            userId: userId, displayName: profile.displayName, avatarFileId: profile.avatarFileId, status: profile.status,
            version: version)
    }
}
