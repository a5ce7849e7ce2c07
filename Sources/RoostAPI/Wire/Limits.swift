/// Every limit of the protocol, in one place (ledger §8.7). The unit is in the name or in the comment.
public enum Limits {
    /// Characters of a channel, user or client id.
    public static let identifierLength = 128
    /// UTF-8 bytes of such an id.
    static let identifierSizeBytes = 4 * identifierLength
    /// Characters of a user's or channel's display name.
    public static let displayNameLength = 128
    /// Characters of a file reference.
    public static let fileIDLength = 128
    /// UTF-8 bytes of a metadata object, written as JSON without white space (AM-35).
    public static let metadataSizeBytes = 100_000
    /// Levels of nesting in metadata.
    public static let metadataDepth = 32
    /// Tags of a channel.
    public static let channelTags = 20
    /// Characters of a tag.
    public static let tagLength = 64
    /// Tags of a message.
    public static let messageTags = 5
    /// Characters of a message's text.
    public static let messageTextLength = 20_000
    /// Characters of a message's custom type.
    public static let customTypeLength = 128
    /// Characters of a message's data.
    public static let messageDataLength = 20_000
    /// Bytes of a message's whole content as JSON, all fields together. An event with it is sent to every device and to every node of a cluster.
    public static let messageContentSizeBytes = 512_000
    /// Bytes of all copies of an admin message to several channels, which are written and returned at once. A message of 100,000 bytes can
    /// be sent to 100.
    public static let adminMessagesSizeBytes = 10_000_000
    /// Bytes of all messages that one call deletes for everyone, with the earlier versions that are kept of them: they are read at once, and
    /// deleted or stored at once.
    public static let deletedMessagesSizeBytes = 10_000_000
    /// Entries of a message's mentionees: one for users, one for the channel (MN-04).
    public static let mentionees = 2
    /// The most users that an app's option may allow one message to mention, and to notify of it (D-25).
    public static let mentionsPerMessageMax = 30
    /// Lists of texts of a message (SB-37, X-25).
    public static let metaArrays = 10
    /// Characters of the name of a message's list of texts.
    public static let metaArrayNameLength = 64
    /// Values in a message's list of texts.
    public static let metaArrayValues = 100
    /// Characters of a value in a message's list of texts.
    public static let metaArrayValueLength = 128
    /// Target languages of a message (SB-38).
    public static let targetLanguages = 10
    /// Characters of a language tag (RFC 5646).
    public static let languageLength = 35
    /// Channels that one call sends an admin message to.
    public static let channelsPerCall = 100
    /// Messages that one call deletes.
    public static let messagesPerCall = 100
    /// Members added by one call.
    public static let membersPerCall = 100
    /// Users fetched by one call.
    public static let usersPerCall = 100
    /// Users whose changes one call requests.
    public static let changedUsersPerCall = 1000
    /// Users that accompany the rows of one response: a page, a resume or changes.
    public static let usersPerChanges = 200
    /// The most channels that an app's option may allow per user.
    public static let channelsPerUserMax = 20_000
    /// Members of a group or a conversation unless another number is set (SB-01).
    public static let membersPerGroup = 100
    /// Characters of a channel's data.
    public static let channelDataLength = 20_000
    /// Characters of the address of a channel's picture.
    public static let coverURLLength = 2048
    /// Characters of an invitation's welcome text (EM-24).
    public static let welcomeLength = 500
    /// Pending invitations to one channel.
    public static let pendingInvitationsPerChannel = 1000
    /// Pending invitations of one user.
    public static let pendingInvitationsPerUser = 1000
    /// Characters of the name of a channel type or a role.
    public static let typeNameLength = 64
    /// Types of an app's own.
    public static let channelTypes = 50
    /// Roles of an app's own.
    public static let channelRoles = 25
    /// Values in one filter of a query.
    public static let filterValues = 20
    /// Roles in a query of members.
    public static let rolesPerQuery = 10
    /// The rate limit of a channel (AM-08).
    public static let rateLimitMessages = 1000
    /// The longest window of a rate limit.
    public static let rateLimitWindowSeconds = 3600
    /// The most seconds of a mute, a silence or a rate limit with an end: a hundred years.
    public static let durationSeconds = 3_155_760_000
    /// Hours for which an idempotency key is kept (SB-12).
    public static let idempotencyKeyHours = 168
    /// Hours by which a key's time may be ahead of the server's clock.
    public static let idempotencyKeyAheadHours = 24
    /// Idempotency keys kept for one user at a time.
    public static let idempotencyKeysPerUser = 10_000
    /// The most seconds that an app's option may allow for a token: ten years.
    public static let tokenLifetimeSecondsMax = 3650 * 86_400
    /// The most seconds for which an app's option may keep deleted messages: 30 days.
    public static let undeletionSecondsMax = 30 * 86_400
    /// The most seconds for which an app's option may keep earlier versions: a year.
    public static let versionSecondsMax = 365 * 86_400
    /// Earlier versions kept of one message; older ones are deleted.
    public static let versionsPerMessage = 10
    /// Devices of a user that are listed: the least recently used one is evicted.
    public static let devicesPerUser = 100
    /// Characters of a device's id.
    public static let deviceIDLength = 64
    /// Characters of a device's name.
    public static let deviceNameLength = 128
    /// Characters of the name of a device's platform.
    public static let platformLength = 32
    /// Single tokens revoked at one time, not counting those that have expired.
    public static let revokedTokens = 100_000
    /// Members of a channel unless its type sets a lower number (AM-01).
    public static let membersPerChannel = 300_000
    /// Members above which a channel counts as large: its signals are sent only to its watchers.
    public static let largeChannelMembers = 1000
    /// Users named by one of the server's own messages.
    public static let systemMessageUsers = 30
    /// Rows of a page: the default and the most.
    public static let historyPage = (standard: 30, max: 100)
    /// Members of a page.
    public static let memberPage = (standard: 30, max: 100)
    /// Channels of a page.
    public static let channelPage = (standard: 20, max: 100)
    /// Effects of a page.
    public static let effectPage = (standard: 30, max: 100)
    /// Changed messages and members in one response to a request for changes.
    public static let changesPage = (standard: 500, max: 1000)
    /// Changed messages and members after which a response to a resume ends: `first` for a client without channels, which shows the first
    /// response right away, `max` for any other.
    public static let resumeRows = (first: 500, max: 2000)
    /// Messages missed in one channel above which a resume returns the newest page instead of each of them.
    public static let resumeMessagesPerChannel = 500
    /// Newest messages returned with a channel that is new to the client.
    public static let freshMessages = 20
    /// Newest mentions of a whole channel returned with a channel that is new to the client.
    public static let freshMentions = 20
    /// Bytes of content after which a page ends early; the rest is on the next page.
    public static let pageContentBytes = 1_048_576
    /// Members in the response to a watch; the rest are paged with `member.list`.
    public static let watchMembers = 30
    /// Watchers of a page (ST-12).
    public static let watcherPage = (standard: 30, max: 300)
    /// Watchers that may be skipped before a page (ST-12).
    public static let watcherOffset = 10_000
    /// Users named by one signal about watchers.
    public static let watcherNames = 20
    /// Users named as typing by one signal.
    public static let typingUsers = 10
    /// Members up to which all of them are notified how far the others have read. In a channel with more, only its watchers are.
    public static let receiptMembers = 10
    /// Watchers above which changes of the watchers are sent every five seconds at most, and custom signals in batches.
    public static let manyWatchers = 100
    /// Connections on one of a server's event loops (one per core, unless `--event-loops` says otherwise) that read one channel, above which their
    /// read positions are stored every ten seconds.
    public static let manyReaders = 100
    /// Members whose read positions one signal carries.
    public static let readersPerSignal = 50
    /// Users whose new name or picture one signal carries.
    public static let usersPerSignal = 20
    /// Seconds after which typing ends unless it is reported again.
    public static let typingSeconds = 10
    /// Channels that one connection watches at a time.
    public static let watchedChannels = 2000
    /// Connections of one user, on one of a server's event loops, that may each receive as many channels as a user may be in, or a
    /// connection may watch: the limit for all of them together is ten times as many channels.
    public static let connectionsWithAllChannels = 10
    /// Bytes of the metadata of an app's own signal.
    public static let signalSizeBytes = 4000
    /// Calls per second by one user, of each operation that costs others something and stores nothing: an app's own signals, typing,
    /// presence and preferences.
    public static let signalsPerSecond = 10
    /// Calls of `device.signOut` per minute by one user.
    public static let signOutsPerMinute = 20
    /// Calls of `preferences.update` with `sharesPresence` per minute by one user: each affects all of their connections, in all of their channels.
    public static let presenceChangesPerMinute = 20
    /// Characters of an effect's kind.
    public static let effectKindLength = 64
    /// Characters of an effect's key.
    public static let effectKeyLength = 255
    /// Bytes of a message on a socket, in one frame or in all its fragments.
    public static let messageSizeBytes = 1_048_576
    /// Bytes that a socket may send before it is authenticated: the frame with the token.
    public static let unauthenticatedSizeBytes = 16_384
    /// Bytes of an HTTP request's body.
    public static let bodySizeBytes = 1_048_576
    /// JSON values in one message or body. Reading a value costs far more than its bytes do.
    public static let jsonValues = 25_000
    /// Levels of nested objects and arrays in one message or body: more than any field may have.
    public static let jsonDepth = 128
    /// Combining marks in a row, in any text of a message or body: comparing texts sorts each row of marks, in time quadratic in its
    /// length. Unicode's stream-safe format allows 30 (UAX #15).
    public static let combiningMarks = 128
    /// The highest position of a stream: the largest integer that every JSON library reads exactly (2⁵³ − 1).
    public static let seqMax: Seq = 9_007_199_254_740_991
    /// Characters of a page cursor. It may hold a name and an id, with several bytes for each letter.
    public static let cursorLength = 4096
}

extension Limits {
    /// Bytes of UTF-8 that a text may have for each character of its limit.
    package static let bytesPerCharacterMax = 8

    /// Throws `limit_exceeded` if the text has more characters than the limit, and `invalid_argument` if it contains U+0000, which not
    /// every database can store. It also bounds the bytes, against characters with many combining marks.
    package static func check(_ text: String?, length: Int, field: String) throws(RoostError) {
        guard let text else { return }
        guard !text.utf8.contains(0) else { throw .invalidArgument(field, "must not contain the character U+0000") }
        // A text never has more characters than bytes, so most texts need no counting of characters.
        if text.utf8.count <= length { return }
        // A text with too many bytes may still have few characters: some emoji take more than twenty bytes each. Its characters aren't counted.
        guard text.utf8.count <= length * bytesPerCharacterMax else {
            throw .limitExceeded(field, limit: length, unit: "characters and \(length * bytesPerCharacterMax) bytes")
        }
        guard text.count <= length else { throw .limitExceeded(field, limit: length, unit: "characters") }
    }

    /// Throws if there are too many tags, or if one is a duplicate, empty or too long.
    package static func check(tags: [String]?, count: Int) throws(RoostError) {
        guard let tags else { return }
        guard tags.count <= count else { throw .limitExceeded("tags", limit: count, unit: "tags") }
        for tag in tags {
            guard !tag.isEmpty else { throw .invalidArgument("tags", "must not contain an empty tag") }
            try check(tag, length: tagLength, field: "tags")
        }
        guard Set(tags).count == tags.count else { throw .notUnique("tags") }
    }

    /// Throws if the metadata isn't an object, is nested too deeply or is too large.
    package static func check(metadata: JSONValue?) throws(RoostError) {
        guard let metadata else { return }
        guard case .object = metadata else { throw .invalidArgument("metadata", "must be a JSON object") }
        guard metadata.depth <= metadataDepth else {
            throw .limitExceeded("metadata", limit: metadataDepth, unit: "levels of nesting")
        }
        guard metadata.sizeBytes <= metadataSizeBytes else {
            throw .limitExceeded("metadata", limit: metadataSizeBytes, unit: "bytes")
        }
    }

    /// Throws unless each text is a language tag: letters, then letters and digits with hyphens between (RFC 5646).
    static func check(languages: [String]?) throws(RoostError) {
        guard let languages else { return }
        guard languages.count <= targetLanguages else {
            throw .limitExceeded("targetLanguages", limit: targetLanguages, unit: "languages")
        }
        for language in languages {
            guard language.utf8.count <= languageLength else {
                throw .limitExceeded("targetLanguages", limit: languageLength, unit: "characters")
            }
            let parts = language.split(separator: "-", omittingEmptySubsequences: false)
            let isTag = parts.enumerated().allSatisfy { index, part in
                (1...8).contains(part.count) && part.utf8.allSatisfy { UInt8.isLetter($0) || (index > 0 && UInt8.isDigit($0)) }
            }
            guard isTag else { throw .invalidArgument("targetLanguages", "must contain only language tags, such as de or pt-BR") }
        }
        guard Set(languages).count == languages.count else { throw .notUnique("targetLanguages") }
    }

    /// Returns the size of a page, or the default if none is given; throws if it is out of bounds.
    package static func page(
        _ limit: Int?, _ bounds: (standard: Int, max: Int), field: String = "limit", least: Int = 1
    ) throws(RoostError) -> Int {
        guard let limit else { return bounds.standard }
        guard limit >= least else { throw .invalidArgument(field, "must be \(least) or more") }
        guard limit <= bounds.max else {
            throw RoostError(.limitExceeded, "\(field) may be at most \(bounds.max).", field: field, limit: Int64(bounds.max))
        }
        return limit
    }

    /// Throws if a stream position is negative or larger than ``seqMax``.
    package static func check(seq: Seq?, field: String) throws(RoostError) {
        guard let seq else { return }
        guard seq >= 0 else { throw .invalidArgument(field, "must be 0 or more") }
        guard seq <= seqMax else { throw .invalidArgument(field, "must be at most \(seqMax)") }
    }

    /// What a list of users is for.
    enum UserList {
        /// Users whom the call is about: at least one, each once.
        case targets
        /// The first users of a new channel: any, with duplicates too.
        case initialMembers
        /// Users whom the call looks up: any, with duplicates too.
        case lookup
    }

    /// Throws if a list of users is too long or has an invalid id, and if a list of targets is empty or has a duplicate.
    static func check(users: [UserID], field: String, as list: UserList = .targets) throws(RoostError) {
        if list == .targets, users.isEmpty { throw .invalidArgument(field, "must not be empty") }
        let limit = list == .lookup ? usersPerCall : membersPerCall
        guard users.count <= limit else { throw .limitExceeded(field, limit: limit, unit: "users") }
        for user in users { try user.validate(field: field) }
        if list == .targets, Set(users).count < users.count { throw .notUnique(field) }
    }

    /// Throws if a list in a filter is empty or too long, or one of its values is refused.
    static func check<Value>(
        list: [Value]?, count: Int, field: String, each: (Value) throws(RoostError) -> Void
    ) throws(RoostError) {
        guard let list else { return }
        guard !list.isEmpty else { throw .invalidArgument(field, "must not be empty") }
        guard list.count <= count else { throw .limitExceeded(field, limit: count, unit: "values") }
        for value in list { try each(value) }
    }

    /// The names of channel types and roles, as a pattern of the API description.
    static let namePattern = "^[a-z0-9_-]+$"
    /// The addresses of pictures, likewise.
    package static let coverURLPattern = "^(https?://[^\\u0000-\\u0020\\u007f]*)?$"

    /// Throws unless the text can name a channel type or a role.
    static func check(name: String, field: String) throws(RoostError) {
        guard !name.isEmpty else { throw .invalidArgument(field, "must not be empty") }
        guard name.utf8.count <= typeNameLength else { throw .limitExceeded(field, limit: typeNameLength, unit: "characters") }
        let isValid = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isValid else { throw .invalidArgument(field, "must contain only a to z, 0 to 9, '-' and '_'") }
    }

    /// Throws unless the text is empty or the address of a picture: http or https, without white space or control characters.
    static func check(coverUrl: String?) throws(RoostError) {
        guard let coverUrl, !coverUrl.isEmpty else { return }
        try check(coverUrl, length: coverURLLength, field: "coverUrl")
        guard coverUrl.hasPrefix("https://") || coverUrl.hasPrefix("http://"),
            coverUrl.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F })
        else { throw .invalidArgument("coverUrl", "must be an address that begins with https:// or http://") }
    }

    /// Throws unless a duration is more than 0 seconds, or −1 for no end (D-07).
    static func check(seconds: Int?, field: String) throws(RoostError) {
        guard let seconds, seconds != -1 else { return }
        guard seconds >= 1 else { throw .invalidArgument(field, "must be 1 or more, or -1 (forever)") }
        guard seconds <= durationSeconds else { throw .limitExceeded(field, limit: durationSeconds, unit: "seconds") }
    }

    /// Every limit that may matter to clients, by name.
    public static let table: [String: Int] = [
        "identifierLength": identifierLength, "displayNameLength": displayNameLength, "fileIDLength": fileIDLength,
        "metadataSizeBytes": metadataSizeBytes, "metadataDepth": metadataDepth, "channelTags": channelTags, "tagLength": tagLength,
        "messageTags": messageTags, "messageTextLength": messageTextLength, "customTypeLength": customTypeLength,
        "messageDataLength": messageDataLength, "messageContentSizeBytes": messageContentSizeBytes,
        "adminMessagesSizeBytes": adminMessagesSizeBytes, "deletedMessagesSizeBytes": deletedMessagesSizeBytes,
        "mentionees": mentionees,
        "metaArrays": metaArrays,
        "metaArrayNameLength": metaArrayNameLength, "metaArrayValues": metaArrayValues,
        "metaArrayValueLength": metaArrayValueLength,
        "targetLanguages": targetLanguages, "languageLength": languageLength, "channelsPerCall": channelsPerCall,
        "messagesPerCall": messagesPerCall, "channelDataLength": channelDataLength, "coverURLLength": coverURLLength,
        "welcomeLength": welcomeLength, "membersPerCall": membersPerCall, "usersPerCall": usersPerCall,
        "changedUsersPerCall": changedUsersPerCall,
        "membersPerChannel": membersPerChannel, "membersPerGroup": membersPerGroup, "largeChannelMembers": largeChannelMembers,
        "pendingInvitationsPerChannel": pendingInvitationsPerChannel, "pendingInvitationsPerUser": pendingInvitationsPerUser,
        "channelTypes": channelTypes, "channelRoles": channelRoles, "filterValues": filterValues, "rolesPerQuery": rolesPerQuery,
        "watcherPage": watcherPage.max, "watcherOffset": watcherOffset, "watchedChannels": watchedChannels,
        "typingSeconds": typingSeconds,
        "signalSizeBytes": signalSizeBytes, "signalsPerSecond": signalsPerSecond, "signOutsPerMinute": signOutsPerMinute,
        "presenceChangesPerMinute": presenceChangesPerMinute,
        "receiptMembers": receiptMembers,
        "manyWatchers": manyWatchers, "manyReaders": manyReaders,
        "historyPage": historyPage.max, "memberPage": memberPage.max, "channelPage": channelPage.max,
        "messageSizeBytes": messageSizeBytes, "unauthenticatedSizeBytes": unauthenticatedSizeBytes,
        "bodySizeBytes": bodySizeBytes,
        "jsonValues": jsonValues, "jsonDepth": jsonDepth, "combiningMarks": combiningMarks, "rateLimitMessages": rateLimitMessages,
        "rateLimitWindowSeconds": rateLimitWindowSeconds,
        "idempotencyKeyHours": idempotencyKeyHours, "idempotencyKeyAheadHours": idempotencyKeyAheadHours,
        "idempotencyKeysPerUser": idempotencyKeysPerUser, "revokedTokens": revokedTokens,
        "versionsPerMessage": versionsPerMessage, "devicesPerUser": devicesPerUser, "deviceIDLength": deviceIDLength,
        "deviceNameLength": deviceNameLength, "platformLength": platformLength,
    ]
}

extension UInt8 {
    fileprivate static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
    fileprivate static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
