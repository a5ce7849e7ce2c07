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

extension StoreWrite {
    /// Puts an invitation in the place of an older one.
    static func invitation(_ invitation: Invitation) -> StoreWrite { .rows(Rows([invitation]), of: .channel(invitation.channelId)) }
}
