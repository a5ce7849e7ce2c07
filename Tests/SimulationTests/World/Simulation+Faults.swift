import RoostAPI
import RoostTestSupport

/// What goes wrong.
extension Simulation {
    func fault() throws {
        guard !isHealed else { return }
        scheduler.after(scheduler.random.number(200...6000)) { [unowned self] in try fault() }
        let client = scheduler.random.pick(clients)
        switch scheduler.random.number(1...100) {
        case 1...30:
            scheduler.note("\(client.name) loses its connection")
            client.connection?.cut()
        case 31...38:
            scheduler.note("\(client.name)'s connection goes silent")
            client.connection?.vanish()
        case 39...46: crash(client)
        case 47...60:
            scheduler.note("\(client.name) will crash amid its writes")
            client.writesUntilCrash = scheduler.random.number(1...3)
            scheduler.after(scheduler.random.number(1_000...15_000)) { [unowned self] in crash(client) }
        case 61...65: crashServer()
        case 66...80:
            server.fate = scheduler.random.pick([.crashBeforeCommit, .crashAfterCommit, .crashAfterDelivery])
            scheduler.note("the next commit meets \(server.fate.map { "\($0)" } ?? "nothing")")
            scheduler.after(scheduler.random.number(500...20_000)) { [unowned self] in try server.start() }
        case 81...85: server.fate = .diskFull
        case 86...93:
            server.close(scheduler.random.pick([.tokenExpired, .restart, .resume, .tokenRevoked]), connectionsOf: client.user)
        default:
            guard profile.setsClock else { return }
            server.clockSkew = Int64(scheduler.random.number(-86_400_000...86_400_000))
            scheduler.note("the clock is set by \(server.clockSkew) ms")
        }
    }

    private func crash(_ client: SimulatedClient) {
        client.crash()
        scheduler.after(scheduler.random.number(0...8_000)) { client.launch() }
    }

    private func crashServer() {
        server.crash()
        scheduler.after(scheduler.random.number(0...10_000)) { [unowned self] in try server.start() }
    }
}
