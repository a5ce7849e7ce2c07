public import RoostAPI

extension Chat {
    /// This device's id, for a backend that keeps something for each device, such as the address of its pushes. In ``devices()`` it is the `deviceId` of
    /// the row with `isCurrent`.
    ///
    /// It is made once and kept with the user's files, and so needs no connection. Each user has another id on this device, and gets another one after
    /// logging out. With ``Storage/inMemory``, each chat has another.
    /// - Throws: `RoostError` with `storage_in_use` or `storage_failed` if this device's files can't be opened, `unauthenticated` once the user logs out.
    public var deviceId: DeviceID {
        get async throws {
            try await driver.requireSession()
            return try await driver.files().device
        }
    }

    /// Returns the user's devices from the server, most recently used first, at most `Limits.devicesPerUser`. This device is included, with
    /// `isCurrent` set, unless the app has turned that off (``Configuration/device``).
    ///
    /// - Throws: The errors of ``call(_:isolation:)``.
    public func devices() async throws -> [Device] { try await call(ListDevices()) }

    /// Signs out one of the user's other devices: it is disconnected and removed from the list, and the token it last connected with is revoked. The
    /// device then asks its app for a new token; the app's backend decides whether to issue one. With one, the device is listed again.
    ///
    /// The same happens with this device's own id. To end the user's session here, call ``logOut(discardingUnsent:signingOutDevice:)`` instead.
    ///
    /// - Returns: The result. `isTokenRevoked` is false if the token has no `jti`: it stays valid until it expires, and the device can reconnect with it.
    /// - Throws: `RoostError` with `not_found` for a device that isn't listed, and the errors of ``call(_:isolation:)``.
    @discardableResult
    public func signOut(device: DeviceID) async throws -> SignedOutDevice { try await call(SignOutDevice(device: device)) }
}
