import Foundation
import GRDB
import RoostAPI

/// A list of permissions takes a bit for each permission there is, so that those of a channel are five bytes and not 300. The schema ends with
/// the names of the permissions: a version with others fetches again.
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
        // Most channels never had a change that concerned all members.
        let ofRoles = byRole.permissions.mapValues { PermissionBits($0) }
        try row.put(ofRoles.isEmpty ? nil : RolePermissions(bits: ofRoles))
        try row.put(byRole.channelSeq)
    }
}

/// The permissions of each role.
private struct RolePermissions: JSONCacheColumn {
    var bits: [String: PermissionBits]
}

/// A list of permissions in the order of all, in which the server has them.
private struct PermissionBits: CacheColumn, Codable {
    private var bytes: [UInt8]

    init(_ permissions: [Permission]) {
        bytes = [UInt8](repeating: 0, count: (Permission.allCases.count + 7) / 8)
        for permission in permissions {
            guard let place = Self.places[permission] else { continue }
            bytes[place / 8] |= 1 << (place % 8)
        }
    }

    init(cached row: inout CacheReader) throws { bytes = [UInt8](try row.value() as Data) }
    func bind(to row: inout CacheWriter) throws { try row.bind(bytes) }

    var permissions: [Permission] {
        Permission.allCases.enumerated().compactMap { place, permission in
            place / 8 < bytes.count && bytes[place / 8] & (1 << (place % 8)) != 0 ? permission : nil
        }
    }

    private static let places = Dictionary(
        uniqueKeysWithValues: Permission.allCases.enumerated().map { (place, permission) in (permission, place) })
}
