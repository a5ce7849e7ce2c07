/// An operator's options for the whole app.
public struct AppOptions: Codable, Hashable, Sendable {
    /// The most channels that one user may be a member of: 1 to 20,000.
    public var channelsPerUser: Int = 2000
    /// Whether new members see earlier messages (SB-14, D-11).
    public var showsHistoryToNewMembers: Bool = true
    /// The most seconds that a token may be valid: from its `iat` to its `exp`, or from now if it has no `iat`.
    public var tokenLifetimeSecondsMax: Int = AppOptions.tokenLifetimeSecondsStandard  // wire: may be absent
    /// Whether a new name may look like another one in the app.
    public var confusableNames: ConfusableNames = .allowed  // wire: may be absent, read as KnownName<ConfusableNames>
    /// Whether a message may mention its whole channel (MN-13).
    public var isMentionAllEnabled: Bool = true  // wire: may be absent
    /// The most users that one message may mention by name: 1 to 30 (MN-01, D-25).
    public var mentionsPerMessage: Int = 30  // wire: may be absent
    /// The most users notified by `mention.received` for one message, including all of its edits; others are still mentioned. 0 to 30 (SB-45, D-25).
    public var mentionNotifyCap: Int = 30  // wire: may be absent

    /// For how many seconds a deleted message's content is kept and it can be undeleted; 0, the default, for not at all. At most 30 days.
    public var undeletionSeconds: Int = 0  // wire: may be absent
    /// For how many seconds operators can read a message's content from before an edit; 0, the default, for not at all. At most a year.
    public var versionSeconds: Int = 0  // wire: may be absent
    /// Which messages are pushed at all (MN-22, D-20).
    public var pushLevel: PushLevel = .all  // wire: may be absent, read as KnownName<PushLevel>

    /// Which messages are pushed to members who aren't connected.
    public enum PushLevel: String, Codable, CaseIterable, Sendable, WireEnumeration {
        /// Every message that counts as unread.
        case all
        /// Messages that mention a member, by name or with the whole channel, to that member; and those sent with `force`.
        case mentionsOnly
        /// None, whatever the sender's option.
        case none
    }

    /// How to treat a name or id that can be mistaken for another one, such as a Cyrillic `а` for an `a`.
    public enum ConfusableNames: String, Codable, CaseIterable, Sendable, WireEnumeration {
        case allowed
        /// Refused with `already_exists`: users' ids and names and channels' ids are compared with all others, channels' names with those
        /// of channels that everyone can find.
        case refused
    }

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channelsPerUser: Int = 2000, showsHistoryToNewMembers: Bool = true,
        tokenLifetimeSecondsMax: Int = AppOptions.tokenLifetimeSecondsStandard, confusableNames: ConfusableNames = .allowed,
        isMentionAllEnabled: Bool = true, mentionsPerMessage: Int = 30, mentionNotifyCap: Int = 30, undeletionSeconds: Int = 0,
        versionSeconds: Int = 0, pushLevel: PushLevel = .all
    ) {
        self.channelsPerUser = channelsPerUser
        self.showsHistoryToNewMembers = showsHistoryToNewMembers
        self.tokenLifetimeSecondsMax = tokenLifetimeSecondsMax
        self.confusableNames = confusableNames
        self.isMentionAllEnabled = isMentionAllEnabled
        self.mentionsPerMessage = mentionsPerMessage
        self.mentionNotifyCap = mentionNotifyCap
        self.undeletionSeconds = undeletionSeconds
        self.versionSeconds = versionSeconds
        self.pushLevel = pushLevel
    }

    // derived: init(from:)
    /// An older server doesn't tell all of them. A value that a newer one has added is read as the default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channelsPerUser = try container.decode(Int.self, forKey: .channelsPerUser)
        showsHistoryToNewMembers = try container.decode(Bool.self, forKey: .showsHistoryToNewMembers)
        tokenLifetimeSecondsMax =
            try container.decodeIfPresent(Int.self, forKey: .tokenLifetimeSecondsMax) ?? AppOptions.tokenLifetimeSecondsStandard
        confusableNames =
            try container.decodeIfPresent(KnownName<ConfusableNames>.self, forKey: .confusableNames)?.value ?? .allowed
        isMentionAllEnabled = try container.decodeIfPresent(Bool.self, forKey: .isMentionAllEnabled) ?? true
        mentionsPerMessage = try container.decodeIfPresent(Int.self, forKey: .mentionsPerMessage) ?? 30
        mentionNotifyCap = try container.decodeIfPresent(Int.self, forKey: .mentionNotifyCap) ?? 30
        undeletionSeconds = try container.decodeIfPresent(Int.self, forKey: .undeletionSeconds) ?? 0
        versionSeconds = try container.decodeIfPresent(Int.self, forKey: .versionSeconds) ?? 0
        pushLevel = try container.decodeIfPresent(KnownName<PushLevel>.self, forKey: .pushLevel)?.value ?? .all
    }

    /// 30 days.
    public static let tokenLifetimeSecondsStandard = 30 * 86_400

    private static func check(_ seconds: Int, max: Int, field: String) throws(RoostError) {
        guard seconds >= 0 else { throw .invalidArgument(field, "must be 0 or more") }
        guard seconds <= max else { throw .limitExceeded(field, limit: max, unit: "seconds") }
    }

    /// Throws if a number is outside its limits.
    public func validate() throws(RoostError) {
        guard channelsPerUser >= 1 else { throw .invalidArgument("channelsPerUser", "must be 1 or more") }
        guard channelsPerUser <= Limits.channelsPerUserMax else {
            throw .limitExceeded("channelsPerUser", limit: Limits.channelsPerUserMax, unit: "channels")
        }
        guard tokenLifetimeSecondsMax >= 1 else { throw .invalidArgument("tokenLifetimeSecondsMax", "must be 1 or more") }
        guard tokenLifetimeSecondsMax <= Limits.tokenLifetimeSecondsMax else {
            throw .limitExceeded("tokenLifetimeSecondsMax", limit: Limits.tokenLifetimeSecondsMax, unit: "seconds")
        }
        guard mentionsPerMessage >= 1 else { throw .invalidArgument("mentionsPerMessage", "must be 1 or more") }
        guard mentionsPerMessage <= Limits.mentionsPerMessageMax else {
            throw .limitExceeded("mentionsPerMessage", limit: Limits.mentionsPerMessageMax, unit: "users")
        }
        guard mentionNotifyCap >= 0 else { throw .invalidArgument("mentionNotifyCap", "must be 0 or more") }
        guard mentionNotifyCap <= Limits.mentionsPerMessageMax else {
            throw .limitExceeded("mentionNotifyCap", limit: Limits.mentionsPerMessageMax, unit: "users")
        }
        try Self.check(undeletionSeconds, max: Limits.undeletionSecondsMax, field: "undeletionSeconds")
        try Self.check(versionSeconds, max: Limits.versionSecondsMax, field: "versionSeconds")
    }
}

/// The limits and options that a client should know before it composes anything (ledger §8.7).
public struct AppConfiguration: Codable, Hashable, Sendable {
    /// The app's options.
    public var options: AppOptions
    /// Each limit by its name, in the unit given in docs/protocol.md.
    public var limits: [String: Int]
    /// The roles in channels: the built-in ones and the app's own.
    public var roles: [RoleDefinition]
    /// How messages' `targetLanguages` are handled (SB-38).
    public var translation: TranslationStatus = .unavailable  // wire: may be absent, read as KnownName<TranslationStatus>

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        options: AppOptions, limits: [String: Int], roles: [RoleDefinition], translation: TranslationStatus = .unavailable
    ) {
        self.options = options
        self.limits = limits
        self.roles = roles
        self.translation = translation
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        options = try container.decode(AppOptions.self, forKey: .options)
        limits = try container.decode([String: Int].self, forKey: .limits)
        roles = try container.decode([RoleDefinition].self, forKey: .roles)
        translation = try container.decodeIfPresent(KnownName<TranslationStatus>.self, forKey: .translation)?.value ?? .unavailable
    }
}

/// The app's limits and options.
public struct GetConfiguration: Operation {
    public typealias Response = AppConfiguration
    public static let name = "config.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/config"
    public static let permission = Permission.configRead
    public static let summary = "The app's limits and options."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}
