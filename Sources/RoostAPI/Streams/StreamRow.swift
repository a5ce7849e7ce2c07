/// A kind of row that streams carry: a message, a member, an invitation.
///
/// A kind is declared once, in the folder of its feature, and named in one list, ``RowKinds/standard``. Events, changes, missed events,
/// resuming, concealing, lenient reading and the SDK's cache all use that list and never name a feature's row.
package protocol StreamRow: WireWritable, Decodable, Hashable, Sendable {
    /// The kind's name: that of its member in ``Rows``, and of its table in the SDK's cache. Letters only.
    static var kind: String { get }
    /// Whether a stream has at most one such row. It is then a single value in ``Rows`` instead of a list.
    static var isSingle: Bool { get }
    /// A row as ``PlainReadable`` reads it. By default none: Foundation reads every one.
    init?(plainly json: inout PlainJSON)
    /// The key that identifies a row in its stream.
    var key: String { get }
    /// Which of two rows with one key is newer: the one with the higher stamp, and of equal ones the one that arrives later.
    var stamp: Int64 { get }
    /// The seq of the message that the row is, or is about; nil for none. Clients keep the row as long as the message.
    var aboutMessage: Seq? { get }
    /// The seq of a message whose concealment conceals the row: users who may not see the message don't get it (SB-14, SB-26). By default that of
    /// the message that the row is about.
    var concealedWith: Seq? { get }
    /// The seq of a message that the row reports as permanently deleted; nil for most kinds. Rows about that message are deleted with it.
    var purgedMessage: Seq? { get }
    /// The users that the row names only by their ids. None by default.
    var namedUsers: [UserID] { get }
    /// The approximate encoded size of the row in bytes, which bounds pages. 200 by default.
    var contentSizeBytes: Int { get }
}

extension StreamRow {
    package static var isSingle: Bool { false }
    package init?(plainly json: inout PlainJSON) { return nil }
    package var aboutMessage: Seq? { nil }
    package var concealedWith: Seq? { aboutMessage }
    package var purgedMessage: Seq? { nil }
    package var namedUsers: [UserID] { [] }
    package var contentSizeBytes: Int { 200 }
}

/// The kinds of rows that a program knows, as a value. Rows of other kinds are skipped when read.
package struct RowKinds: Sendable {
    package let all: [any StreamRow.Type]

    package init(_ all: [any StreamRow.Type]) { self.all = all }

    /// The kinds of Roost. A kind that depends on another one comes after it.
    package static let standard = RowKinds([
        Message.self, PurgedMessage.self, ChannelMention.self, Member.self, Membership.self, Invitation.self, User.self,
        Preferences.self, OwnDeletion.self, ChannelDraft.self,
    ])

    /// Returns these kinds and others.
    package func adding(_ others: [any StreamRow.Type]) -> RowKinds { RowKinds(all + others) }

    /// The key of a decoder's `userInfo` for the kinds to read; ``standard`` if it has none.
    package static let userInfoKey = CodingUserInfoKey(rawValue: "roost.rowKinds")

    package static func known(to decoder: any Decoder) -> RowKinds {
        userInfoKey.flatMap { decoder.userInfo[$0] as? RowKinds } ?? .standard
    }
}
