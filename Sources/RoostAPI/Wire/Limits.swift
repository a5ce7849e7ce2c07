/// Every limit of the protocol, in one place (ledger §8.7). The unit stands in the name or in the comment.
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
    public static let tagLength = 64
    /// Tags of a message.
    public static let messageTags = 5
    /// Characters of a message's text.
    public static let messageTextLength = 20_000
    /// Characters of a message's custom type, and of its data.
    public static let customTypeLength = 128
    public static let messageDataLength = 20_000
    /// Members added by one call.
    public static let membersPerCall = 100
    /// Users fetched by one call.
    public static let usersPerCall = 100
    /// Channels that one user may be a member of.
    public static let channelsPerUser = 2000
    /// Members of a channel where its type sets no lower number (AM-01).
    public static let membersPerChannel = 300_000
    /// Rows of a page: the default and the most.
    public static let historyPage = (standard: 30, most: 100)
    public static let memberPage = (standard: 30, most: 100)
    public static let channelPage = (standard: 20, most: 100)
    /// Changed messages and members that one answer to a resume or to changes carries.
    public static let changesPage = (standard: 500, most: 1000)
    /// Messages missed in one channel above which a resume answers with the newest page instead of with each of them.
    public static let resumeMessagesPerChannel = 500
    /// Newest messages that come with a channel which is fresh to the client.
    public static let freshMessages = 20
    /// Bytes of content after which a page of messages ends early; the rest is on the next page.
    public static let pageContentBytes = 1_048_576
    /// Members that the answer to a watch carries; the rest are paged with `members.list`.
    public static let watchMembers = 30
    /// Bytes of one WebSocket frame, and of one message put together from fragments.
    public static let frameSizeBytes = 65_536
    public static let messageSizeBytes = 1_048_576
    /// Bytes of an HTTP request's body.
    public static let bodySizeBytes = 1_048_576
    /// JSON values in one message or body. Reading a value costs far more than its bytes do.
    public static let jsonValues = 10_000
    /// The highest position of a stream: what every JSON library reads exactly (2⁵³ − 1).
    public static let seqMax: Seq = 9_007_199_254_740_991
    /// Characters of a page cursor.
    public static let cursorLength = 512
}

extension Limits {
    /// Throws `limit_exceeded` when the text has more characters than the limit, and `invalid_argument` when it holds U+0000, which not every
    /// database can store. Also bounds the bytes, so that no pile of combining marks on one character goes past it.
    public static func check(_ text: String?, length: Int, field: String) throws(RoostError) {
        guard let text else { return }
        guard !text.utf8.contains(0) else { throw .invalidArgument(field, "must not contain the character U+0000") }
        // A text is never longer in characters than in bytes, so that most texts need no counting of characters.
        if text.utf8.count <= length { return }
        guard text.utf8.count <= length * 8, text.count <= length else {
            throw .limitExceeded(field, limit: length, unit: "characters")
        }
    }

    /// Throws when there are too many tags, or one is empty or too long.
    public static func check(tags: [String]?, count: Int) throws(RoostError) {
        guard let tags else { return }
        guard tags.count <= count else { throw .limitExceeded("tags", limit: count, unit: "tags") }
        for tag in tags {
            guard !tag.isEmpty else { throw .invalidArgument("tags", "must not hold an empty tag") }
            try check(tag, length: tagLength, field: "tags")
        }
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

    /// The size of a page: the default when none is asked for; throws when it is outside 1 to the most.
    public static func page(_ limit: Int?, _ bounds: (standard: Int, most: Int)) throws(RoostError) -> Int {
        guard let limit else { return bounds.standard }
        guard limit >= 1 else { throw .invalidArgument("limit", "must be 1 or more") }
        guard limit <= bounds.most else { throw .limitExceeded("limit", limit: bounds.most, unit: "rows") }
        return limit
    }

    /// Throws when a stream position is negative, or larger than any can be.
    public static func check(seq: Seq?, field: String) throws(RoostError) {
        guard let seq else { return }
        guard seq >= 0 else { throw .invalidArgument(field, "must be 0 or more") }
        guard seq <= seqMax else { throw .invalidArgument(field, "must be at most \(seqMax)") }
    }
}
