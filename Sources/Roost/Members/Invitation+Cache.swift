import Foundation
import GRDB
import RoostAPI

extension Invitation: CachedRow {
    static let schema = """
        CREATE TABLE invitations (
            \(Invitation.cacheColumns), is_waiting, PRIMARY KEY (channel_id, user_id, inviter)
        ) WITHOUT ROWID;
        CREATE INDEX invitations_waiting ON invitations (is_waiting, invited_at, channel_id);
        """

    static func save(_ rows: [Invitation], of stream: StreamID, as user: UserID, in database: Database) throws {
        for invitation in rows {
            try database.run(upsert) { row in
                try row.put(invitation)
                try row.put(invitation.userId == user && invitation.state == .pending)
            }
        }
    }

    private static let upsert = """
        INSERT INTO invitations (\(Invitation.cacheColumns), is_waiting) VALUES (\(Invitation.cacheColumns.placeholders), ?)
        ON CONFLICT (channel_id, user_id, inviter) DO UPDATE
        SET \(Invitation.cacheColumns.replaced), is_waiting = excluded.is_waiting WHERE excluded.revision >= revision
        """

    /// Invitations to or by the user belong to the user's own stream, and stay.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {
        try database.run(
            "DELETE FROM invitations WHERE channel_id = ?1 AND user_id <> ?2 AND inviter <> ?2", [channel.rawValue, user.rawValue])
    }

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [Invitation], of stream: StreamID, in change: inout StoreChange) {
        change.isOwn = true
        for invitation in rows { change.channels.insert(invitation.channelId) }
    }
}

extension Invitation: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = "channel_id, user_id, inviter, welcome, state, invited_at, ended_at, revision"

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            channelId: row.value(), userId: row.value(), inviter: row.value(), welcome: row.value(), state: row.value(),
            invitedAt: row.value(), endedAt: row.value(), revision: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(channelId)
        try row.put(userId)
        try row.put(inviter)
        try row.put(welcome)
        try row.put(state)
        try row.put(invitedAt)
        try row.put(endedAt)
        try row.put(revision)
    }
}

extension Database {
    /// Returns the user's pending invitations, the newest first, each with its inviter, and with its channel if it is known on this device.
    func waitingInvitations() throws -> [InvitationItem] {
        let invitations: [Invitation] = try models(
            """
            SELECT \(Invitation.cacheColumns) FROM invitations WHERE is_waiting = 1 ORDER BY invited_at DESC, channel_id DESC
            """, [])
        return try invitations.map { invitation in
            InvitationItem(
                invitation: invitation, inviter: try summary(of: invitation.inviter), channel: try channel(invitation.channelId))
        }
    }
}

extension StoreWrite {
    /// Replaces an older invitation.
    static func invitation(_ invitation: Invitation) -> StoreWrite { .rows(Rows([invitation]), of: .channel(invitation.channelId)) }
}
