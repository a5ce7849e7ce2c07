import RoostAPI
import RoostCore
import RoostServer
import RoostTestSupport

/// A small world in which operations are performed with any fields. None may fail except by a refusal.
final class OperationFuzz {
    private let world: CoreWorld

    init() throws {
        world = try CoreWorld()
        for user: UserID in ["ann", "bob", "cem"] { try world.user(user) }
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.channel("private", type: .group, owner: "ann")
    }

    func check(_ random: inout FuzzRandom) throws {
        let bytes = MessageFuzz.input(&random)
        guard case .call(let operation, let key) = UntrustedBytes.message(bytes) else { return }
        let role: AppRole = random.chance(5) ? random.pick([.admin, .service]) : .user
        let user: UserID = random.pick(["ann", "bob", "cem"])
        do {
            let connection: Int64? = random.chance(2) ? 1 : nil
            let error =
                try key.map { try world.refusal(operation, key: $0, as: user, role: role) }
                ?? world.refusal(operation, as: user, role: role, connection: connection)
            if error?.code == .internalError { throw FuzzFinding("an operation is answered with internal_error", bytes) }
        } catch let finding as FuzzFinding {
            throw finding
        } catch {
            throw FuzzFinding("an operation fails with \(error)", bytes)
        }
    }
}
