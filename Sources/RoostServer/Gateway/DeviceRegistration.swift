import RoostAPI
import RoostCore
import Synchronization

/// The device of one connection on its way from the socket to the rules, and back with the number of its sign-in.
///
/// The engine writes it before the welcome is on its way, and the socket reads it when that has come.
final class DeviceRegistration: Sendable {
    private let description: DeviceDescription
    private let registered = Mutex<DeviceIdentity?>(nil)

    init(of description: DeviceDescription) { self.description = description }

    /// The device; nil before it has signed in.
    var device: DeviceIdentity? { registered.withLock { $0 } }

    /// Notes the device in the transaction that connects it. A transaction that is run again notes it again.
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

    /// Notes that the device was signed out. Whether it is this connection's sign-in is known with its welcome, which may be on its way.
    mutating func note(_ changes: [AccessSubject: AccessChange], of user: UserID) {
        guard case .signedOut(_, _, let last)? = changes[.device(user, description.deviceId)] else { return }
        endedSignIn = max(endedSignIn, last)
    }

    /// Why the caller is shut out, whose sign-in is known now; nil if they aren't.
    func refusal(of caller: Caller) -> RoostError? {
        AccessChange.signedOut(caller.user, device: description.deviceId, upTo: endedSignIn).refusal(of: caller)
    }
}

extension DeviceDescription {
    /// Why it isn't taken; nil if it is.
    var refusal: RoostError? {
        do throws(RoostError) {
            try validate()
            return nil
        } catch {
            return error
        }
    }
}
