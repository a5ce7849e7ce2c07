import RoostAPI
import RoostCore
import RoostServer
import RoostTestSupport

/// A little world in which operations are performed whatever their fields are. None may fail otherwise than by a refusal.
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
        guard case .call(let operation) = UntrustedBytes.message(bytes) else { return }
        let role: AppRole = random.chance(5) ? random.pick([.admin, .service]) : .user
        let user: UserID = random.pick(["ann", "bob", "cem"])
        do {
            let error = try world.refusal(operation, as: user, role: role, connection: random.chance(2) ? 1 : nil)
            if error?.code == .internalError { throw FuzzFinding("an operation is answered with internal_error", bytes) }
        } catch let finding as FuzzFinding {
            throw finding
        } catch {
            throw FuzzFinding("an operation fails with \(error)", bytes)
        }
    }
}
