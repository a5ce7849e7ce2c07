import RoostServer

/// Checks of the servers behind a cluster, if the settings name them.
struct ClusterChecks {
    let settings: Settings

    func findings() -> [Finding] {
        let configuration = settings.server
        return [configuration.database.map(database), configuration.bus.map(bus)].compactMap { $0 }
    }

    private func database(_ url: String) -> Finding {
        do {
            let (found, isDurable) = try ClusterExamination.database(url)
            guard isDurable else {
                return Finding(
                    "database", .fail, found,
                    advice: "With fsync off, what is acknowledged is lost when its machine fails: set fsync = on")
            }
            return Finding("database", .ok, found)
        } catch {
            return Finding("database", .fail, "\(error)".safe(), advice: "Make sure that this machine can connect to it")
        }
    }

    private func bus(_ url: String) -> Finding {
        do {
            guard try ClusterExamination.bus(url) else {
                return Finding(
                    "bus", .fail, "it doesn't answer", advice: "Start nats-server, or name where it listens with --bus")
            }
            return Finding("bus", .ok, "it answers")
        } catch {
            return Finding("bus", .fail, "\(error)".safe(), advice: "Give an address as nats://host:4222")
        }
    }
}
