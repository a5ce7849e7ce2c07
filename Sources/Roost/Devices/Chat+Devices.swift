public import RoostAPI

extension Chat {
    /// Returns the user's devices from the server, those first that were used last: at most `Limits.devicesPerUser`. This one is among them, with
    /// `isCurrent`, unless the app has turned that off (``Configuration/device``).
    ///
    /// - Throws: `RoostError` as ``call(_:)`` does.
    public func devices() async throws -> [Device] { try await call(ListDevices()) }

    /// Signs one of the user's devices out: it is disconnected and not listed any more, and the token that it connected with last is revoked. A device asks its
    /// app for another token then: whether it gets one is up to the app's backend.
    ///
    /// - Returns: What was done. `isTokenRevoked` is false if the token has no `jti`: it is valid until it ends, and the device can come back with it.
    /// - Throws: `RoostError` with `not_found` for one that isn't listed, and as ``call(_:)`` does.
    @discardableResult
    public func signOut(device: DeviceID) async throws -> SignedOutDevice { try await call(SignOutDevice(device: device)) }
}
