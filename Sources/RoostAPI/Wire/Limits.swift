/// Every limit of the protocol, in one place (ledger §8.7). The unit is in the name or in the comment.
public enum Limits {
    /// Characters of a channel, user or client id.
    public static let identifierLength = 128
    /// Characters of a user's or channel's display name.
    public static let displayNameLength = 128
    /// Characters of a file reference.
    public static let fileIDLength = 128
    /// UTF-8 bytes of a metadata object, written as JSON without white space (AM-35).
    public static let metadataSizeBytes = 100_000
    /// Levels of nesting in metadata.
    public static let metadataDepth = 32
    /// Tags of a channel, and characters of one.
    public static let channelTags = 20
    /// Characters of a tag.
    public static let tagLength = 64
    /// Tags of a message.
    public static let messageTags = 5
    /// Characters of a message's text.
    public static let messageTextLength = 20_000
    /// Characters of a message's custom type, and of its data.
    public static let customTypeLength = 128
    /// Characters of a message's data.
    public static let messageDataLength = 20_000
    /// Bytes of all of a message, as JSON: what its fields may have together. An event with it goes to every device, and to every node of a cluster.
    public static let messageContentSizeBytes = 512_000
    /// Bytes of all copies of an admin message that goes to several channels: they are written, and answered, at once. One of 100,000 bytes goes to 100.
    public static let adminMessagesSizeBytes = 10_000_000
    /// Bytes of all messages that one call deletes for everyone: they are read, and kept as long as they can be brought back, at once.
    public static let deletedMessagesSizeBytes = 10_000_000
    /// Entries of a message's mentionees: one for users, one for the channel (MN-04).
    public static let mentionees = 2
    /// The most users that an app's option may allow one message to mention, and to tell of it (D-25).
    public static let mentionsPerMessageMax = 30
    /// Lists of texts of a message, characters of one's name, values of one, and characters of a value (SB-37, X-25).
    public static let metaArrays = 10
    /// Characters of the name of a message's list of texts.
    public static let metaArrayNameLength = 64
    /// Values in a message's list of texts.
    public static let metaArrayValues = 100
    /// Characters of a value in a message's list of texts.
    public static let metaArrayValueLength = 128
    /// Languages that a message's text is wanted in (SB-38), and characters of one's tag (RFC 5646).
    public static let targetLanguages = 10
    /// Characters of the tag of a language (RFC 5646).
    public static let languageLength = 35
    /// Channels that one call sends an admin's message to.
    public static let channelsPerCall = 100
    /// Messages that one call deletes.
    public static let messagesPerCall = 100
    /// Members added by one call.
    public static let membersPerCall = 100
    /// Users fetched by one call.
    public static let usersPerCall = 100
    /// Users whose changes one call asks for.
    public static let changedUsersPerCall = 1000
    /// Users that accompany the rows of one answer: a page, a resume or changes.
    public static let usersPerChanges = 200
    /// The most channels that an app's option may allow per user.
    public static let channelsPerUserMax = 20_000
    /// Members of a group or a conversation where nothing sets another number (SB-01).
    public static let membersPerGroup = 100
    /// Characters of a channel's data, and of the address of its picture.
    public static let channelDataLength = 20_000
    /// Characters of the address of a channel's picture.
    public static let coverURLLength = 2048
    /// Characters of an invitation's welcome text (EM-24).
    public static let welcomeLength = 500
    /// Invitations that wait for an answer, into one channel and to one user.
    public static let pendingInvitationsPerChannel = 1000
    /// Invitations of one user that wait for an answer.
    public static let pendingInvitationsPerUser = 1000
    /// Characters of the name of a channel type or a role; types and roles of an app's own.
    public static let typeNameLength = 64
    /// Types of an app's own.
    public static let channelTypes = 50
    /// Roles of an app's own.
    public static let channelRoles = 25
    /// Values in one filter of a query, and roles in a query of members.
    public static let filterValues = 20
    /// Roles in a query of members.
    public static let rolesPerQuery = 10
    /// The rate limit of a channel (AM-08).
    public static let rateLimitMessages = 1000
    /// The longest window of a rate limit.
    public static let rateLimitWindowSeconds = 3600
    /// The most seconds of a mute, a silence or a rate limit that isn't for ever: a hundred years.
    public static let durationSeconds = 3_155_760_000
    /// Hours for which an idempotency key is kept (SB-12).
    public static let idempotencyKeyHours = 168
    /// Hours by which a key's time may be ahead of the server's clock.
    public static let idempotencyKeyAheadHours = 24
    /// The keys that are kept of one user at a time.
    public static let idempotencyKeysPerUser = 10_000
    /// The most seconds that an app's option may allow for a token: ten years.
    public static let tokenLifetimeSecondsMax = 3650 * 86_400
    /// The most seconds for which an app's option may have deleted messages kept: 30 days.
    public static let undeletionSecondsMax = 30 * 86_400
    /// The most seconds for which it may have earlier versions kept: a year.
    public static let versionSecondsMax = 365 * 86_400
    /// Earlier versions that are kept of one message; older ones go.
    public static let versionsPerMessage = 10
    /// Devices of a user that are listed: the one used longest ago makes room.
    public static let devicesPerUser = 100
    /// Characters of a device's id.
    public static let deviceIDLength = 64
    /// Characters of a device's name.
    public static let deviceNameLength = 128
    /// Characters of the name of a device's platform.
    public static let platformLength = 32
    /// Single tokens whose revocation is remembered at one time.
    public static let revokedTokens = 100_000
    /// Members of a channel where its type sets no lower number (AM-01).
    public static let membersPerChannel = 300_000
    /// Members above which a channel is a large one: signals of it go to its watchers alone.
    public static let largeChannelMembers = 1000
    /// Users whom one of the server's own messages names.
    public static let systemMessageUsers = 30
    /// Rows of a page: the default and the most.
    public static let historyPage = (standard: 30, max: 100)
    /// Members of a page.
    public static let memberPage = (standard: 30, max: 100)
    /// Channels of a page.
    public static let channelPage = (standard: 20, max: 100)
    /// Effects of a page.
    public static let effectPage = (standard: 30, max: 100)
    /// Changed messages and members that one answer to a request for changes carries.
    public static let changesPage = (standard: 500, max: 1000)
    /// Changed messages and members after which an answer to a resume ends: one to a client that has no channels yet, which shows what comes
    /// first, and any other.
    public static let resumeRows = (first: 500, max: 2000)
    /// Messages missed in one channel above which a resume answers with the newest page instead of with each of them.
    public static let resumeMessagesPerChannel = 500
    /// Newest messages that come with a channel which is fresh to the client.
    public static let freshMessages = 20
    /// Newest mentions of a whole channel that come with a channel which is fresh to the client.
    public static let freshMentions = 20
    /// Bytes of content after which a page ends early; the rest is on the next page.
    public static let pageContentBytes = 1_048_576
    /// Members that the answer to a watch carries; the rest are paged with `member.list`.
    public static let watchMembers = 30
    /// Watchers of a page, and how many may be passed by before it (ST-12).
    public static let watcherPage = (standard: 30, max: 300)
    /// Watchers that may be passed by before a page (ST-12).
    public static let watcherOffset = 10_000
    /// Users whom one signal about watchers names.
    public static let watcherNames = 20
    /// Users whom one signal names as typing.
    public static let typingUsers = 10
    /// Members up to which all of them are told how far the others have read. In a channel with more, only those who watch it.
    public static let receiptMembers = 10
    /// Watchers above which who comes and goes is told every five seconds at most.
    public static let manyWatchers = 100
    /// Connections on one of a server's threads for connections (one for each core, unless `--event-loops` says otherwise) above which what they read of
    /// one channel at this moment is stored every ten seconds.
    public static let manyReaders = 100
    /// Members whose reading one signal tells.
    public static let readersPerSignal = 50
    /// Users whose new name or picture one signal tells.
    public static let usersPerSignal = 20
    /// Seconds after which nobody types any more who hasn't said so again.
    public static let typingSeconds = 10
    /// Channels that one connection watches at a time.
    public static let watchedChannels = 2000
    /// Connections of one user, on one of a server's threads for connections, that may each get as many channels as a user may be in, or a connection watch:
    /// the channels of all of them together are ten times as many.
    public static let connectionsWithAllChannels = 10
    /// Bytes of what an app tells in a signal.
    public static let signalSizeBytes = 4000
    /// Calls in a second of one user, of each of the operations that cost others something and keep nothing: an app's own signals, typing, presence and preferences.
    public static let signalsPerSecond = 10
    /// Calls of `device.signOut` in a minute of one user.
    public static let signOutsPerMinute = 20
    /// Calls of `preferences.update` with `sharesPresence` in a minute of one user: each concerns all of their connections, in all of their channels.
    public static let presenceChangesPerMinute = 20
    /// Characters of an effect's kind and key.
    public static let effectKindLength = 64
    /// Characters of an effect's key.
    public static let effectKeyLength = 255
    /// Bytes of a message on a socket, in one frame or in all its fragments.
    public static let messageSizeBytes = 1_048_576
    /// Bytes that a socket may send before it is authenticated: the token's frame.
    public static let unauthenticatedSizeBytes = 16_384
    /// Bytes of an HTTP request's body.
    public static let bodySizeBytes = 1_048_576
    /// JSON values in one message or body. Reading a value costs far more than its bytes do.
    public static let jsonValues = 25_000
    /// Objects and arrays in one another, in one message or body: more than any field may have.
    public static let jsonDepth = 128
    /// Combining marks in a row, in any text of a message or body: comparing texts puts a row of marks in order, which takes the square of its length. Unicode's
    /// stream-safe format has 30 (UAX #15).
    public static let combiningMarks = 128
    /// The highest position of a stream: the largest integer that every JSON library reads exactly (2⁵³ − 1).
    public static let seqMax: Seq = 9_007_199_254_740_991
    /// Characters of a page cursor. It may hold a name and an id, each of letters that take several bytes.
    public static let cursorLength = 4096
}

extension Limits {
    /// Throws `limit_exceeded` when the text has more characters than the limit, and `invalid_argument` when it holds U+0000, which not
    /// every database can store. Also bounds the bytes, so that a pile of combining marks on one character can't exceed it.
    public static func check(_ text: String?, length: Int, field: String) throws(RoostError) {
        guard let text else { return }
        guard !text.utf8.contains(0) else { throw .invalidArgument(field, "must not contain the character U+0000") }
        // A text is never longer in characters than in bytes, so that most texts need no counting of characters.
        if text.utf8.count <= length { return }
        // What has too many bytes may have few characters: those of some emoji take more than twenty each. They aren't counted then.
        guard text.utf8.count <= length * 8 else {
            throw .limitExceeded(field, limit: length, unit: "characters and \(length * 8) bytes")
        }
        guard text.count <= length else { throw .limitExceeded(field, limit: length, unit: "characters") }
    }

    /// Throws if there are too many tags, or if one is a duplicate, empty or too long.
    public static func check(tags: [String]?, count: Int) throws(RoostError) {
        guard let tags else { return }
        guard tags.count <= count else { throw .limitExceeded("tags", limit: count, unit: "tags") }
        for tag in tags {
            guard !tag.isEmpty else { throw .invalidArgument("tags", "must not hold an empty tag") }
            try check(tag, length: tagLength, field: "tags")
        }
        guard Set(tags).count == tags.count else { throw .invalidArgument("tags", "must not contain duplicates") }
    }

    /// Throws when the metadata isn't an object, is nested too deep or too large.
    public static func check(metadata: JSONValue?) throws(RoostError) {
        guard let metadata else { return }
        guard case .object = metadata else { throw .invalidArgument("metadata", "must be a JSON object") }
        guard metadata.depth <= metadataDepth else {
            throw .limitExceeded("metadata", limit: metadataDepth, unit: "levels of nesting")
        }
        guard metadata.sizeBytes <= metadataSizeBytes else {
            throw .limitExceeded("metadata", limit: metadataSizeBytes, unit: "bytes")
        }
    }

    /// Throws unless each text is the tag of a language: letters, then letters and digits with hyphens between (RFC 5646).
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
            guard isTag else { throw .invalidArgument("targetLanguages", "must hold tags of languages, such as de or pt-BR") }
        }
        guard Set(languages).count == languages.count else {
            throw .invalidArgument("targetLanguages", "must not contain duplicates")
        }
    }

    /// Returns the size of a page, or the default if none is given; throws if it is outside of what is allowed.
    public static func page(
        _ limit: Int?, _ bounds: (standard: Int, max: Int), field: String = "limit", least: Int = 1
    ) throws(RoostError) -> Int {
        guard let limit else { return bounds.standard }
        guard limit >= least else { throw .invalidArgument(field, "must be \(least) or more") }
        guard limit <= bounds.max else {
            throw RoostError(.limitExceeded, "\(field) may be at most \(bounds.max).", field: field, limit: Int64(bounds.max))
        }
        return limit
    }

    /// Throws when a stream position is negative, or larger than any can be.
    public static func check(seq: Seq?, field: String) throws(RoostError) {
        guard let seq else { return }
        guard seq >= 0 else { throw .invalidArgument(field, "must be 0 or more") }
        guard seq <= seqMax else { throw .invalidArgument(field, "must be at most \(seqMax)") }
    }

    /// Throws when a list of users is empty, too long, holds one twice, or an id that can't be one.
    public static func check(users: [UserID], field: String, mayBeEmpty: Bool = false) throws(RoostError) {
        guard mayBeEmpty || !users.isEmpty else { throw .invalidArgument(field, "must not be empty") }
        guard users.count <= membersPerCall else { throw .limitExceeded(field, limit: membersPerCall, unit: "users") }
        for user in users { try user.validate(field: field) }
        guard mayBeEmpty || Set(users).count == users.count else { throw .invalidArgument(field, "must hold each user once") }
    }

    /// Throws when a list in a filter is empty or too long, or one of its values is refused.
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
        guard isValid else { throw .invalidArgument(field, "must hold only a to z, 0 to 9, '-' and '_'") }
    }

    /// Throws unless the text is empty or the address of a picture: http or https, without white space or control characters.
    static func check(coverUrl: String?) throws(RoostError) {
        guard let coverUrl, !coverUrl.isEmpty else { return }
        try check(coverUrl, length: coverURLLength, field: "coverUrl")
        guard coverUrl.hasPrefix("https://") || coverUrl.hasPrefix("http://"),
            coverUrl.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F })
        else { throw .invalidArgument("coverUrl", "must be an address that begins with https:// or http://") }
    }

    /// Throws unless a duration is more than 0 seconds, or −1 for ever (D-07).
    static func check(seconds: Int?, field: String) throws(RoostError) {
        guard let seconds, seconds != -1 else { return }
        guard seconds >= 1 else { throw .invalidArgument(field, "must be 1 or more, or -1 for ever") }
        guard seconds <= durationSeconds else { throw .limitExceeded(field, limit: durationSeconds, unit: "seconds") }
    }

    /// Every limit that a client may want to know, by name.
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
