/// A kind of row that streams carry: a message, a member, an invitation.
///
/// A kind is declared once, in the folder of its feature, and named in one list, ``RowKinds/standard``. Events, changes, missed events, resuming,
/// concealing, reading leniently and the SDK's cache go through that list; none of them names a feature's row.
package protocol StreamRow: WireWritable, Decodable, Hashable, Sendable {
    /// The kind's name: that of its member in ``Rows``, and of its table in the SDK's cache. Letters only.
    static var kind: String { get }
    /// Whether a stream has one such row at most. It then stands in ``Rows`` by itself instead of in a list.
    static var isSingle: Bool { get }
    /// What tells the rows of a stream apart.
    var key: String { get }
    /// Which of two rows with one key is newer: the one with the higher stamp, and of equal ones the one that comes later.
    var stamp: Int64 { get }
    /// The seq of the message that the row is about, or is; nil for one that is about none. Whoever may not see the message doesn't get the
    /// row (SB-14, SB-26).
    var aboutMessage: Seq? { get }
    /// The seq of a message of which the row says that it was deleted for good; nil for most kinds. Rows about that message go with it.
    var purgedMessage: Seq? { get }
}

extension StreamRow {
    package static var isSingle: Bool { false }
    package var aboutMessage: Seq? { nil }
    package var purgedMessage: Seq? { nil }
}

/// The kinds of rows that a program knows, as a value. What is of another kind is left out when it is read.
package struct RowKinds: Sendable {
    package let all: [any StreamRow.Type]

    package init(_ all: [any StreamRow.Type]) { self.all = all }

    /// Those of Roost. A kind that needs another one to be there comes after it.
    package static let standard = RowKinds([
        Message.self, PurgedMessage.self, Member.self, Membership.self, Invitation.self, User.self, Preferences.self,
    ])

    /// These and others.
    package func adding(_ others: [any StreamRow.Type]) -> RowKinds { RowKinds(all + others) }

    /// Where a decoder's `userInfo` has the kinds to read; ``standard`` where it has none.
    package static let userInfoKey = CodingUserInfoKey(rawValue: "roost.rowKinds")

    package static func known(to decoder: any Decoder) -> RowKinds {
        userInfoKey.flatMap { decoder.userInfo[$0] as? RowKinds } ?? .standard
    }
}
