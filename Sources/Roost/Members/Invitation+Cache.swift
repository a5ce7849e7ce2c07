import Foundation
import GRDB
import RoostAPI

extension Invitation: CachedRow {
    static let schema = """
        CREATE TABLE invitations (
            channel_id TEXT NOT NULL, user_id TEXT NOT NULL, inviter TEXT NOT NULL, revision INTEGER NOT NULL,
            is_waiting INTEGER NOT NULL, invited_at INTEGER NOT NULL, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, user_id, inviter)
        ) WITHOUT ROWID;
        CREATE INDEX invitations_waiting ON invitations (is_waiting, invited_at, channel_id);
        """

    static func save(_ rows: [Invitation], of stream: StreamID, as user: UserID, in database: Database) throws {
        for invitation in rows {
            try database.run(
                """
                INSERT INTO invitations (channel_id, user_id, inviter, revision, is_waiting, invited_at, json) VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (channel_id, user_id, inviter) DO UPDATE
                SET revision = excluded.revision, is_waiting = excluded.is_waiting, invited_at = excluded.invited_at,
                    json = excluded.json
                WHERE excluded.revision >= revision
                """,
                [
                    invitation.channelId.rawValue, invitation.userId.rawValue, invitation.inviter.rawValue, invitation.revision,
                    invitation.userId == user && invitation.state == .pending, invitation.invitedAt.milliseconds,
                    try StoredJSON.encode(invitation),
                ])
        }
    }

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

extension Database {
    /// Returns the user's pending invitations, the newest first, each with its channel if that is known here.
    func waitingInvitations() throws -> [(invitation: Invitation, channel: Channel?)] {
        let statement = try cachedStatement(
            sql: """
                SELECT i.json, a.json FROM invitations i LEFT JOIN channel_attributes a ON a.channel_id = i.channel_id
                WHERE i.is_waiting = 1 ORDER BY i.invited_at DESC, i.channel_id DESC
                """)
        return try Row.fetchAll(statement).map { row in
            (try StoredJSON.decode(from: row[0]), try (row[1] as Data?).map { try StoredJSON.decode(from: $0) })
        }
    }
}

extension StoreWrite {
    /// Puts an invitation in the place of an older one.
    static func invitation(_ invitation: Invitation) -> StoreWrite { .rows(Rows([invitation]), of: .channel(invitation.channelId)) }
}
