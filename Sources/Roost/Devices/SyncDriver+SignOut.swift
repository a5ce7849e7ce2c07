import Logging
import RoostAPI

extension SyncDriver {
    /// How long a user who logs out waits for the server to sign out this device.
    private static var signOutTimeout: Duration { .seconds(5) }

    /// Asks the server to sign out this device, if there is a connection. If that fails, the device stays in the user's list.
    ///
    /// The user is logging out by then, so this client doesn't connect again, which would list the device anew.
    func signOut(_ device: DeviceID) async {
        guard statuses.current == .online, environment.device != nil else { return }
        let (token, clock) = (nextToken(), environment.clock)
        let alarm = Task {
            try await clock.sleep(for: Self.signOutTimeout)
            submit(.cancel(token))
        }
        defer { alarm.cancel() }
        do {
            _ = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<CallAnswer, any Error>) in
                ask(.call(token, SignOutDevice(device: device)), for: token, continuation)
            }
        } catch {
            environment.logger.notice("This device couldn't be signed out.", metadata: ["error": "\(error)"])
        }
    }
}
