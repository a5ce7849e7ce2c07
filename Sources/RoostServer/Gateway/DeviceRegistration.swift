import RoostAPI
import RoostCore
import Synchronization

/// Carries a connection's device from the socket to the rules, and back with the number of its sign-in.
///
/// The engine writes it before it sends the welcome, and the socket reads it when the welcome arrives.
final class DeviceRegistration: Sendable {
    private let description: DeviceDescription
    private let registered = Mutex<DeviceIdentity?>(nil)

    init(of description: DeviceDescription) { self.description = description }

    /// The device; nil before it has signed in.
    var device: DeviceIdentity? { registered.withLock { $0 } }

    /// Registers the device in the transaction that connects it. A retried transaction registers it again.
    func register(in context: inout Context, tokenExpiresAt: Timestamp) throws {
        let device = try context.registerDevice(description, tokenExpiresAt: tokenExpiresAt)
        registered.withLock { $0 = device }
    }
}

/// The device of a socket, from its authentication on.
struct SocketDevice {
    let description: DeviceDescription
    /// The newest sign-in that has ended while this connection had none yet.
    private var endedSignIn: Int64 = 0

    init(description: DeviceDescription) { self.description = description }

    /// Notes that the device was signed out. Whether this was the connection's own sign-in is known only with its welcome, which may be on its way.
    mutating func note(_ changes: [AccessSubject: AccessChange], of user: UserID) {
        guard case .signedOut(_, _, let last)? = changes[.device(user, description.deviceId)] else { return }
        endedSignIn = max(endedSignIn, last)
    }

    /// Why the caller, whose sign-in is now known, is shut out; nil if they aren't.
    func refusal(of caller: Caller) -> RoostError? {
        AccessChange.signedOut(caller.user, device: description.deviceId, upTo: endedSignIn).refusal(of: caller)
    }
}

extension DeviceDescription {
    /// Why it is refused; nil if it is valid.
    var refusal: RoostError? {
        do throws(RoostError) {
            try validate()
            return nil
        } catch {
            return error
        }
    }
}
