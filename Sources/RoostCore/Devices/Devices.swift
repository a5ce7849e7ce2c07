public import RoostAPI

/// The devices of users. One names itself when it authenticates on a socket. Signing it out closes its sockets, and revokes its
/// token if that can be revoked alone.
///
/// A signed-out device keeps its row, which isn't listed and distinguishes its sockets from those that it opens later. A user
/// has at most twice as many rows as the list may have devices: the least recently used one is evicted. If it comes back, its
/// sign-ins continue above those of its former row: signing it out closes their sockets, too.

extension ListDevices: Handled {
    public func handle(in context: inout Context) throws -> [Device] {
        try context.require(.streamRead)
        let current = context.caller.device?.id
        return try context.transaction.devices(of: context.caller.user).filter(\.isSignedIn)
            .sorted { ($1.lastUsedAt, $0.deviceId) < ($0.lastUsedAt, $1.deviceId) }
            .map { row in
                Device(
                    deviceId: row.deviceId, name: row.name, platform: row.platform, createdAt: row.createdAt,
                    lastUsedAt: row.lastUsedAt, isCurrent: row.deviceId == current)
            }
    }
}

extension SignOutDevice: Handled {
    /// It takes the exclusive lock of access changes.
    public static var userRate: UserRate? { .signOuts }

    public func scope(for caller: Caller) -> Scope {
        var scope = Scope.user(caller.user)
        scope.access = [.device(caller.user, device)]
        return scope
    }

    public func handle(in context: inout Context) throws -> SignedOutDevice {
        try context.require(.userUpdateMe)
        let user = context.caller.user
        guard let row = try context.transaction.device(device, of: user), row.isSignedIn else {
            throw RoostError.notFound("device")
        }
        var changes = [AccessChange.signedOut(user, device: device, upTo: row.signIn)]
        var isTokenRevoked = false
        // A token that has expired is revoked too: a node whose clock is behind this one may still accept it.
        if let token = row.tokenId, let end = row.tokenExpiresAt,
            // Users may fill the list of revoked tokens, but must leave room for an administrator's revocations. Their devices
            // are signed out all the same.
            let (_, change) = try context.revoke(token: token, until: end, countMax: Limits.revokedTokens / 10 * 9)
        {
            isTokenRevoked = true
            if let change { changes.append(change) }
        }
        let revision = try context.transaction.nextAccessRevision()
        try context.transaction.perform(
            """
            UPDATE devices SET signed_out = \(row.signIn), revision = \(revision), token_id = NULL, token_expires_at = NULL
            WHERE user_id = \(user) AND device_id = \(device)
            """)
        context.notify(.accessChanged(changes))
        return SignedOutDevice(deviceId: device, isTokenRevoked: isTokenRevoked)
    }
}

extension Context {
    /// Records that the caller's device connects.
    ///
    /// - Parameters:
    ///   - device: The device's description of itself.
    ///   - tokenExpiresAt: The expiry of the caller's token.
    /// - Returns: The device with the number of its sign-in.
    public mutating func registerDevice(_ device: DeviceDescription, tokenExpiresAt: Timestamp) throws -> DeviceIdentity {
        let user = caller.user
        let before = try transaction.device(device.deviceId, of: user)
        var after =
            try before
            ?? DeviceRow(
                deviceId: device.deviceId, createdAt: now, lastUsedAt: now, signIn: transaction.firstSignIn(), signedOut: 0,
                revision: 0)
        if !after.isSignedIn {
            after.signIn += 1
            after.createdAt = now
        }
        (after.name, after.platform) = (device.name?.nilIfEmpty, device.platform?.nilIfEmpty)
        (after.tokenId, after.tokenExpiresAt) = (caller.token?.id, caller.token?.id == nil ? nil : tokenExpiresAt)
        let identity = DeviceIdentity(id: device.deviceId, signIn: after.signIn)
        // A client that keeps reconnecting causes one write a minute, unless its name, platform or token has changed. A last use in the future was
        // written while the clock was wrong: it would keep its place before all others.
        if after == before, after.lastUsedAt <= now, now < after.lastUsedAt.after(seconds: 60) { return identity }
        after.lastUsedAt = now
        try transaction.write(after, of: user)
        if before?.isSignedIn != true { try makeRoom(besides: device.deviceId) }
        return identity
    }

    /// Removes the least recently used devices if there are too many. Their sockets stay, and so do their tokens. The newest
    /// rows of signed-out devices stay, up to the same number: they close sockets that haven't learned of the sign-out yet.
    private func makeRoom(besides device: DeviceID) throws {
        let others = try transaction.devices(of: caller.user).filter { $0.deviceId != device }
        let signedIn = others.filter(\.isSignedIn).sorted { ($0.lastUsedAt, $0.deviceId) > ($1.lastUsedAt, $1.deviceId) }
        let signedOut = others.filter { !$0.isSignedIn }.sorted { $0.revision > $1.revision }
        for row in signedIn.dropFirst(Limits.devicesPerUser - 1) + signedOut.dropFirst(Limits.devicesPerUser) {
            try transaction.bypassingBatchMemory {
                try transaction.perform("DELETE FROM devices WHERE user_id = \(caller.user) AND device_id = \(row.deviceId)")
            }
        }
    }
}

extension Transaction {
    fileprivate func device(_ device: DeviceID, of user: UserID) throws -> DeviceRow? {
        let sql: SQL = "SELECT \(DeviceRow.columns) FROM devices WHERE user_id = \(user) AND device_id = \(device)"
        return try bypassingBatchMemory { try first(sql) { try DeviceRow(reading: &$0) } }
    }

    /// All rows of a user, signed in or not.
    fileprivate func devices(of user: UserID) throws -> [DeviceRow] {
        let sql: SQL = "SELECT \(DeviceRow.columns) FROM devices WHERE user_id = \(user) ORDER BY device_id"
        return try bypassingBatchMemory { try rows(sql) { try DeviceRow(reading: &$0) } }
    }

    /// The sign-in number for a device without a row. It may have had one: the number is at least any that it had, and above each that was ended.
    ///
    /// A device gets a higher number only after a sign-out, and each sign-out takes a number of the access changes. So it has
    /// none above the next of those.
    fileprivate func firstSignIn() throws -> Int64 { try bypassingBatchMemory { try accessRevisionAndEpoch().revision + 1 } }

    fileprivate func write(_ row: DeviceRow, of user: UserID) throws {
        try bypassingBatchMemory {
            try perform(
                """
                INSERT INTO devices (user_id, \(DeviceRow.columns)) VALUES (\(user), \(row: row))
                ON CONFLICT (user_id, device_id) DO UPDATE SET (\(DeviceRow.columns)) = (\(row: row))
                """)
        }
    }

    /// The newest sign-out of a device; nil for none.
    func signOut(of device: DeviceID, of user: UserID) throws -> AccessChange? {
        let sql: SQL = """
            SELECT signed_out FROM devices WHERE user_id = \(user) AND device_id = \(device) AND signed_out > 0
            """
        return try first(sql) { .signedOut(user, device: device, upTo: $0.int64()) }
    }

    /// Calls the body with the sign-outs after a number. A starting server has no sockets, and needs no earlier ones.
    public func eachSignOut(after revision: Int64, _ body: (AccessChange) -> Void) throws {
        let sql: SQL = """
            SELECT user_id, device_id, signed_out FROM devices WHERE revision > 0 AND revision > \(revision)
            """
        try each(sql) { row in body(.signedOut(row.identifier(), device: row.identifier(), upTo: row.int64())) }
    }
}

/// A stored device.
private struct DeviceRow: Hashable {
    var deviceId: DeviceID
    var name: String?
    var platform: String?
    var createdAt: Timestamp
    var lastUsedAt: Timestamp
    /// The `jti` of the token that it last connected with, and that token's expiry.
    var tokenId: String?
    var tokenExpiresAt: Timestamp?
    /// The number of the newest sign-in; never above the next number of a change of access.
    var signIn: Int64
    /// The number of the newest sign-in that was ended; 0 for none.
    var signedOut: Int64
    var revision: Int64

    /// Whether the device is listed.
    var isSignedIn: Bool { signIn > signedOut }
}

extension DeviceRow: BoundRow {
    // derived: columns
    static let columns: SQL = """
        device_id, name, platform, created_at, last_used_at, token_id, token_expires_at, sign_in, signed_out, revision
        """
    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            deviceId: row.value(), name: row.value(), platform: row.value(), createdAt: row.value(), lastUsedAt: row.value(),
            tokenId: row.value(), tokenExpiresAt: row.value(), signIn: row.value(), signedOut: row.value(), revision: row.value())
    }
    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(deviceId)
        try values.bind(name)
        try values.bind(platform)
        try values.bind(createdAt)
        try values.bind(lastUsedAt)
        try values.bind(tokenId)
        try values.bind(tokenExpiresAt)
        try values.bind(signIn)
        try values.bind(signedOut)
        try values.bind(revision)
    }
}
