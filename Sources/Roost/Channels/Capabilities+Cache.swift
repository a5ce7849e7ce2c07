import Foundation
import GRDB
import RoostAPI

/// A list of permissions is stored with one bit per permission, so a channel's take five bytes instead of 300. The names of the permissions are part
/// of the schema: a version with different ones fetches again.
extension Capabilities: CachedModel {
    static let cacheColumns: CacheColumns = "own, own_user_seq, own_channel_seq, by_role, by_role_channel_seq"

    init(cached row: inout CacheReader) throws {
        let bits: PermissionBits = try row.value()
        own = Own(permissions: bits.permissions, userSeq: try row.value(), channelSeq: try row.value())
        let ofRoles: [String: PermissionBits] = (try row.value() as RolePermissions?)?.bits ?? [:]
        byRole = ByRole(permissions: ofRoles.mapValues(\.permissions), channelSeq: try row.value())
    }

    func cache(in row: inout CacheWriter) throws {
        try row.put(PermissionBits(own.permissions))
        try row.put(own.userSeq)
        try row.put(own.channelSeq)
        // Most channels have never had a change that concerned all members.
        let ofRoles = byRole.permissions.mapValues { PermissionBits($0) }
        try row.put(ofRoles.isEmpty ? nil : RolePermissions(bits: ofRoles))
        try row.put(byRole.channelSeq)
    }
}

extension Database {
    /// Replaces the user's permissions in a channel, unless newer ones are stored.
    func save(_ own: Capabilities.Own, in channel: ChannelID) throws {
        try save(Capabilities(own: own), in: channel, Self.upsertOfOwn)
    }

    /// Replaces all members' permissions, by role, unless newer ones are stored.
    func save(_ byRole: Capabilities.ByRole, in channel: ChannelID) throws {
        try save(Capabilities(byRole: byRole), in: channel, Self.upsertOfRoles)
    }

    /// The user's permissions in a channel at a given time, as far as this device knows.
    func permissions(in channel: ChannelID, now: Timestamp) throws -> [Permission] {
        try first(Self.queryOfPermissions, [channel]) { row in
            let role: ChannelRole? = try row.value()
            let mutedUntil: Timestamp? = try row.value()
            return try Capabilities(cached: &row).now(as: role, isMuted: mutedUntil.map { $0 > now } ?? false)
        } ?? []
    }

    private static let queryOfPermissions = """
        SELECT m.role, m.muted_until, \(Capabilities.cacheColumns.of("k"))
        FROM capabilities k LEFT JOIN memberships m ON m.channel_id = k.channel_id AND m.is_member = 1 WHERE k.channel_id = ?
        """

    private func save(_ capabilities: Capabilities, in channel: ChannelID, _ upsert: String) throws {
        try run(upsert) { row in
            try row.put(channel)
            try row.put(capabilities)
        }
    }

    private static let upsertOfOwn = """
        \(insertion) SET own = excluded.own, own_user_seq = excluded.own_user_seq, own_channel_seq = excluded.own_channel_seq
        WHERE (excluded.own_user_seq, excluded.own_channel_seq) >= (own_user_seq, own_channel_seq)
        """
    private static let upsertOfRoles = """
        \(insertion) SET by_role = excluded.by_role, by_role_channel_seq = excluded.by_role_channel_seq
        WHERE excluded.by_role_channel_seq >= by_role_channel_seq
        """
    private static let insertion = """
        INSERT INTO capabilities (channel_id, \(Capabilities.cacheColumns)) VALUES (?, \(Capabilities.cacheColumns.placeholders))
        ON CONFLICT (channel_id) DO UPDATE
        """
}

/// The permissions of each role.
private struct RolePermissions: JSONCacheColumn {
    var bits: [String: PermissionBits]
}

/// A list of permissions in the order of `allCases`, which is the server's order too.
private struct PermissionBits: CacheColumn, Codable {
    private var bytes: [UInt8]

    init(_ permissions: [Permission]) {
        bytes = [UInt8](repeating: 0, count: (Self.all.count + 7) / 8)
        for permission in permissions {
            guard let place = Self.places[permission] else { continue }
            bytes[place / 8] |= 1 << (place % 8)
        }
    }

    init(cached row: inout CacheReader) throws { bytes = [UInt8](try row.value() as Data) }
    func bind(to row: inout CacheWriter) throws { try row.bind(bytes) }

    var permissions: [Permission] {
        var permissions: [Permission] = []
        permissions.reserveCapacity(Self.all.count)
        for (place, permission) in Self.all.enumerated() where place / 8 < bytes.count && bytes[place / 8] & (1 << (place % 8)) != 0
        {
            permissions.append(permission)
        }
        return permissions
    }

    /// Computed once, because each row of a list reads its permissions.
    private static let all = Permission.allCases
    private static let places = Dictionary(
        uniqueKeysWithValues: all.enumerated().map { (place, permission) in (permission, place) })
}
