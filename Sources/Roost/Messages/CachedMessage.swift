import GRDB
import RoostAPI

/// A cached message, with its users as the store knows them.
struct CachedMessage: Sendable {
    let seq: Seq
    let changeSeq: Seq
    let item: MessageItem

    /// Starts with the columns that identify a message that was read before.
    static let query = """
        SELECT m.seq, m.change_seq, m.is_deleted_for_me, \(Message.cacheColumns.of("m")), \(UserSummary.cacheColumns.of("u"))
        FROM messages m LEFT JOIN users u ON u.user_id = m.sender
        """

    /// Reads the columns after those in ``query``.
    init(_ row: inout CacheReader, in database: Database) throws {
        let message: Message = try Message(cached: &row)
        let sender: UserSummary? = try row.optional()
        let item = MessageItem(message, sender: sender ?? UserSummary(userId: message.sender))
        self.init(try message.mentionees == nil ? item : item.withCurrentUsers(in: database), message)
    }

    private init(_ item: MessageItem, _ message: Message) {
        (seq, changeSeq, self.item) = (message.seq, message.changeSeq, item)
    }

    /// The same message with its users as currently stored.
    func withCurrentUsers(in database: Database) throws -> CachedMessage {
        guard let message = item.message else { return self }
        return CachedMessage(try item.withCurrentUsers(in: database), message)
    }
}

extension [MessageItem] {
    /// The same messages of one sender with their users as currently stored. Each user is read once.
    func withCurrentUsers(from sender: UserID, in database: Database) throws -> [MessageItem] {
        guard !isEmpty else { return [] }
        let sender = try database.summary(of: sender)
        var known: [UserID: UserSummary] = [:]
        return try map { item in
            let mentioned = item.content.mentionees?.mentionedUsers ?? []
            for user in mentioned where known[user] == nil { known[user] = try database.summary(of: user) }
            return item.sent(by: sender, mentioning: mentioned.compactMap { known[$0] })
        }
    }
}

extension MessageItem {
    /// The same message with its users as currently stored.
    func withCurrentUsers(in database: Database) throws -> MessageItem {
        let mentioned = content.mentionees?.mentionedUsers ?? []
        return sent(by: try database.summary(of: sender.userId), mentioning: try mentioned.map(database.summary(of:)))
    }
}
