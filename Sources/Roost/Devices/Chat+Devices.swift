public import RoostAPI

extension Chat {
    /// Returns the user's devices from the server, most recently used first, at most `Limits.devicesPerUser`. This device is included, with
    /// `isCurrent` set, unless the app has turned that off (``Configuration/device``).
    ///
    /// - Throws: The errors of ``call(_:isolation:)``.
    public func devices() async throws -> [Device] { try await call(ListDevices()) }

    /// Signs out one of the user's devices: it is disconnected and removed from the list, and the token it last connected with is revoked. The device
    /// then asks its app for a new token; the app's backend decides whether to issue one.
    ///
    /// - Returns: The result. `isTokenRevoked` is false if the token has no `jti`: it stays valid until it expires, and the device can reconnect with it.
    /// - Throws: `RoostError` with `not_found` for a device that isn't listed, and the errors of ``call(_:isolation:)``.
    @discardableResult
    public func signOut(device: DeviceID) async throws -> SignedOutDevice { try await call(SignOutDevice(device: device)) }
}
