public import RoostAPI

extension Chat {
    /// Returns the user's own profile from the server.
    ///
    /// - Throws: The errors of ``call(_:isolation:)``.
    public func me() async throws -> User { try await call(GetMe()) }

    /// Several users, in the order of their ids. Unknown ids are left out.
    ///
    /// - Parameter ids: At most `Limits.usersPerCall`.
    /// - Throws: The errors of ``call(_:isolation:)``.
    public func users(_ ids: [UserID]) async throws -> [User] {
        do {
            return try await call(GetUsers(users: ids))
        } catch let error as RoostError
            where error.code == .limitExceeded && error.limit == Int64(Limits.pageContentBytes) && ids.count > 1
        {
            // Their profiles are too large for one answer.
            let ids = Set(ids).sorted()
            return try await users(Array(ids.prefix(ids.count / 2))) + users(Array(ids.dropFirst(ids.count / 2)))
        }
    }

    /// Returns which of the given users are online, and when the others last were: for users whom no open channel shows, such as a list of contacts
    /// (SB-64).
    ///
    /// Call it again after ``UserPresences/pollInterval``, not sooner. It isn't needed for the members of a watched channel (``LiveChannel/presence()``).
    /// - Parameter ids: At most `Limits.usersPerCall`.
    /// - Throws: `RoostError` with `rate_limited` for more than 10 calls in a second, `overloaded` if the server is too busy, and the errors of
    ///   ``call(_:isolation:)``.
    public func presence(of ids: [UserID]) async throws -> UserPresences { try await call(ListUserPresence(users: ids)) }

    /// Sets whether invitations make the user a member at once, without asking (SB-18). ``preferences`` follows the change.
    ///
    /// When this returns, the change is stored and shown on this device. It is sent as soon as possible. Leave `isolation` out, as for
    /// ``call(_:isolation:)``.
    ///
    /// - Throws: `RoostError` with `storage_failed`, `storage_in_use` or `storage_gone` if this device can't store it.
    public func setAutoAcceptInvitations(_ accepts: Bool, isolation: isolated (any Actor)? = #isolation) async throws {
        try await driver.enqueue(.preferences(UpdatePreferences(autoAcceptInvitations: accepts)))
        await showPreferences()
    }

    /// Sets what other users can see of the user: that they are typing, how far they have read, how far messages have arrived, and that they are
    /// online and watching a channel. Without the last, they are invisible: they appear offline to everyone else, on all of their devices. Nil leaves
    /// a preference as it is; ``preferences`` follows the change.
    ///
    /// When this returns, the change is stored and shown on this device. It is sent as soon as possible. Leave `isolation` out, as for
    /// ``call(_:isolation:)``.
    ///
    /// - Throws: `RoostError` with `storage_failed`, `storage_in_use` or `storage_gone` if this device can't store it.
    public func setSharing(
        typing: Bool? = nil, reading: Bool? = nil, delivery: Bool? = nil, presence: Bool? = nil,
        isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let update = UpdatePreferences(
            sharesTyping: typing, sharesReading: reading, sharesDelivery: delivery, sharesPresence: presence)
        try await driver.enqueue(.preferences(update))
        await showPreferences()
    }

    /// Replaces the given fields of the user's own profile. Absent fields stay unchanged, and an empty text removes a field. Users who have one of
    /// the user's channels open see the name, the picture and the status a moment later. Leave `isolation` out, as for ``call(_:isolation:)``.
    ///
    /// - Throws: The errors of ``call(_:isolation:)``.
    @discardableResult
    public func updateMe(
        displayName: String? = nil, avatarFileId: String? = nil, status: String? = nil, metadata: JSONValue? = nil,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> User {
        try await call(UpdateMe(displayName: displayName, avatarFileId: avatarFileId, status: status, metadata: metadata))
    }
}
