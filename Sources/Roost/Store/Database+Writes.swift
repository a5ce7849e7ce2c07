import Foundation
import GRDB
import RoostAPI

extension Database {
    /// Applies one write. See ``StoreWrite`` for what each means.
    ///
    /// - Parameter store: The number of the store that writes.
    /// - Returns: The users who are shown differently now, as far as the write itself doesn't say so.
    @discardableResult
    func apply(_ write: StoreWrite, as user: UserID, _ kinds: CachedRowKinds, by store: Int64 = 0) throws -> [UserID] {
        switch write {
        case .erase(let epoch): try erase(epoch: epoch, kinds)
        case .userPosition(let seq): try run("UPDATE state SET user_cursor = ?", [seq])
        case .appRole(let role): try run("UPDATE state SET role = ?", [role])
        case .position(let channel, let position): try save(position, of: channel, by: store)
        case .visit(let channel, let position):
            try forget(channel, as: user, kinds)
            try save(position, of: channel, by: store)
        case .advance(let channel, let position):
            // The visit of a chat that is gone continues as this chat's, which may be behind it.
            try run(
                Self.advanceOfPosition,
                [channel.rawValue, position.cursor, position.messageCount, position.hasHole, position.hasEnded, store])
        case .page(let channel, let range): try changeParts(of: channel) { $0.add(range) }
        case .forget(let channel): try forget(channel, as: user, kinds)
        case .forgetMessages(let channel, let range):
            try changeParts(of: channel) { position in
                for gone in position.remove(range) { try kinds.forget(messages: gone, in: channel, self) }
            }
        case .leave(let channel), .endVisit(let channel):
            try forget(channel, as: user, kinds)
            try run("DELETE FROM positions WHERE channel_id = ?", [channel.rawValue])
        // The ends of the visits are written instead (``endingVisits(_:_:)``).
        case .keepVisits: break
        case .channel(let channel): try save(channel)
        case .counters(let channel, let counters): try save(counters, of: channel)
        case .add(let rows, let channel): try add(rows, toCountersOf: channel)
        case .rows(let rows, let stream): try kinds.save(rows, of: stream, as: user, in: self)
        case .rowsOfCached(let rows, let channel):
            guard let position = try position(of: channel) else { break }
            let kept = rows.rows(aboutMessages: position.holds)
            if !kept.isEmptyOfFeatures { try kinds.save(kept, of: .channel(channel), as: user, in: self) }
        case .users(let users): return try save(users)
        case .count(let channel, let rows):
            if let membership = try membership(of: channel) { try replace(membership.counting(rows, as: user)) }
        case .overlay(let channel, let overlay): try setOverlay(overlay, of: channel)
        case .keepOverlays(let channels): try keepOverlays(of: channels)
        case .capabilities(let channel, let own): try save(own, in: channel)
        case .roleCapabilities(let channel, let byRole): try save(byRole, in: channel)
        }
        return []
    }

    static let advanceOfPosition = """
        UPDATE positions
        SET cursor = CASE WHEN visitor IS NULL THEN ?2 ELSE MAX(cursor, ?2) END,
            message_count = ?3, has_hole = ?4, has_ended = ?5, visitor = CASE WHEN visitor IS NOT NULL THEN ?6 END
        WHERE channel_id = ?1
        """

    /// - Parameter store: The store that follows the channel, if it isn't one of the user's own.
    private func save(_ position: Position, of channel: ChannelID, by store: Int64) throws {
        let visitor: Int64? = position.isVisit ? store : nil
        try run(
            """
            INSERT INTO positions (
                channel_id, cursor, window_start, message_count, has_hole, has_ended, stretches, visitor, generation
            )
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, random())
            ON CONFLICT (channel_id) DO UPDATE
            SET cursor = excluded.cursor, window_start = excluded.window_start, message_count = excluded.message_count,
                has_hole = excluded.has_hole, has_ended = excluded.has_ended, stretches = excluded.stretches,
                visitor = excluded.visitor
            """,
            [
                channel.rawValue, position.cursor, position.windowStart, position.messageCount, position.hasHole,
                position.hasEnded, try position.storedStretches, visitor,
            ])
    }

    /// Moves the start of a channel's cached messages: earlier ones were deleted, those in stretches too.
    func beginWindow(of channel: ChannelID, at seq: Seq) throws {
        try run(
            "UPDATE positions SET window_start = MAX(window_start, ?2), stretches = NULL WHERE channel_id = ?1",
            [channel.rawValue, seq])
    }

    /// Changes which of a channel's messages are cached.
    private func changeParts(of channel: ChannelID, _ change: (inout Position) throws -> Void) throws {
        guard var position = try position(of: channel) else { return }
        try change(&position)
        try run(
            "UPDATE positions SET window_start = ?2, stretches = ?3 WHERE channel_id = ?1",
            [channel.rawValue, position.windowStart, try position.storedStretches])
    }

    private func erase(epoch: String, _ kinds: CachedRowKinds) throws {
        try Store.makeTables(in: self, kinds)
        try run("UPDATE state SET epoch = ?", [epoch])
    }

    private func forget(_ channel: ChannelID, as user: UserID, _ kinds: CachedRowKinds) throws {
        try invalidateCounters(of: channel)
        // Rows exist only with a position. Most channels that start over are new here: at the first connection, all of them.
        guard try cursor(of: channel) != nil else { return }
        try kinds.forget(channel, as: user, in: self)
        try run("UPDATE positions SET generation = random() WHERE channel_id = ?", [channel.rawValue])
    }
}
