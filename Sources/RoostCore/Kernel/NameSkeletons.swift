import RoostAPI

/// Names that look alike within one app.
///
/// `name_skeletons` has a row for each look of a user or a channel. The rows are always written, so an operator can have
/// look-alikes refused later: existing names are kept. `is_sole` marks rows written under that rule. A unique index over them
/// keeps two writers, on any nodes, from taking one look at the same moment.
enum NameSkeletons {
    /// The names among which a look must be unique.
    enum Kind: String, CaseIterable, WireEnumeration {
        /// Ids and display names of users: a user without a name is shown by id.
        case user
        /// Names of channels: their ids, and `type:id`. Only if the creator chose the id.
        case channel
        /// Display names of channels that everyone can find. Other channels' names are only shown to their members.
        case channelName
    }

    /// A new name, and the request field that gives it or that makes it findable.
    struct Name {
        var text: String
        var field: String
    }

    /// Returns a channel's display name if everyone can find the channel.
    ///
    /// - Parameter field: The field for a refusal: the one that gives the name, or the one that makes the channel findable.
    static func names(
        ofChannelFoundBy discovery: ChannelPolicy.Audience, _ displayName: String?, field: String = "displayName"
    ) -> [Name] {
        guard discovery == .everyone, let displayName, !displayName.isEmpty else { return [] }
        return [Name(text: displayName, field: field)]
    }
}

extension Context {
    /// Refuses new names that look like others', as ``takeNames(_:id:before:after:)`` does, but without writing: a write that
    /// is rolled back would delay the copying of a backup, which starts over with each rollback.
    func refuseConfusableNames(_ kind: NameSkeletons.Kind, id: String, of names: [NameSkeletons.Name]) throws {
        guard options.confusableNames == .refused else { return }
        for name in names where try transaction.isTaken(Skeleton.key(of: name.text), kind, byOtherThan: id) {
            throw RoostError.confusable(kind, name.field)
        }
    }

    /// Takes the looks of new names, and frees those of former ones.
    ///
    /// - Parameters:
    ///   - kind: The kind of the names.
    ///   - id: The user's or channel's.
    ///   - before: The former names.
    ///   - after: The new names.
    /// - Throws: `already_exists` with the field of the first name that looks like another one's, if the operator refuses that.
    func takeNames(_ kind: NameSkeletons.Kind, id: String, before: [String], after: [NameSkeletons.Name]) throws {
        let former = Set(before.map(Skeleton.key))
        var kept: Set<String> = []
        var new: [(key: String, field: String)] = []
        for name in after {
            let key = Skeleton.key(of: name.text)
            if kept.insert(key).inserted, !former.contains(key) { new.append((key, name.field)) }
        }
        let isSole = options.confusableNames == .refused
        if isSole {
            for (key, field) in new where try transaction.isTaken(key, kind, byOtherThan: id) {
                throw RoostError.confusable(kind, field)
            }
        }
        for (key, field) in new {
            let isWritten = try transaction.insertSkeleton(key, kind, of: id, isSole: isSole)
            // Another node has just taken it: for another user or channel, or for this same user, whom that node has created.
            guard isWritten || !isSole else {
                if kind == .user, try !transaction.isTaken(key, kind, byOtherThan: id) {
                    throw StreamCreatedConcurrently(stream: .user(UserID(rawValue: id)))
                }
                throw RoostError.confusable(kind, field)
            }
        }
        for key in former.subtracting(kept).sorted() {
            try transaction.perform("DELETE FROM name_skeletons WHERE kind = \(kind) AND skeleton = \(key) AND id = \(id)")
        }
    }
}

extension Transaction {
    /// Frees the looks of all names of a user or a channel.
    func freeNames(_ kind: NameSkeletons.Kind, of id: String) throws {
        try perform("DELETE FROM name_skeletons WHERE kind = \(kind) AND id = \(id)")
    }

    fileprivate func isTaken(_ key: String, _ kind: NameSkeletons.Kind, byOtherThan id: String) throws -> Bool {
        try first("SELECT 1 FROM name_skeletons WHERE kind = \(kind) AND skeleton = \(key) AND id <> \(id) LIMIT 1") { _ in true }
            ?? false
    }

    /// Returns false if the look is another's sole one, or already exists.
    func insertSkeleton(_ key: String, _ kind: NameSkeletons.Kind, of id: String, isSole: Bool) throws -> Bool {
        try execute(
            """
            INSERT INTO name_skeletons (kind, skeleton, id, is_sole) VALUES (\(kind), \(key), \(id), \(isSole))
            ON CONFLICT DO NOTHING
            """) == 1
    }
}

extension RoostError {
    fileprivate static func confusable(_ kind: NameSkeletons.Kind, _ field: String) -> RoostError {
        let other =
            switch kind {
            case .user: "the name or id of another user"
            case .channel: "the id of another channel"
            case .channelName: "the name of another channel"
            }
        // A field that only makes the channel public has no look itself.
        let name = kind == .channelName && field != "displayName" ? "The channel's name" : field
        return RoostError(.alreadyExists, "\(name) looks like \(other).", field: field, rule: "confusableNames: refused")
    }
}
