import RoostServer

/// Checks of the servers behind a cluster, if the settings name them.
struct ClusterChecks {
    let settings: Settings

    func findings() -> [Finding] {
        let configuration = settings.server
        let unknown = settings.unknownServers
        return [
            refusal(of: .database, in: unknown) ?? configuration.database.map(database),
            refusal(of: .bus, in: unknown) ?? configuration.bus.map(bus),
        ].compactMap { $0 }
    }

    /// Nil if the setting's value is understood.
    private func refusal(of setting: Setting, in unknown: [UnknownServer]) -> Finding? {
        unknown.first { $0.setting == setting.name }.map {
            Finding(setting.name, .fail, $0.requirement.safe(), advice: "The server won't start with this value: correct it")
        }
    }

    /// The finding for a check that this program can't make, because it can't use such a server.
    private func missing(_ check: String) -> Finding {
        Finding(
            check, .fail, "this roost was built without PostgreSQL and NATS",
            advice: "Build it with them: swift build -c release --product roost --traits Cluster --static-swift-stdlib")
    }

    private func database(_ url: String) -> Finding {
        do {
            let (found, isDurable) = try ClusterExamination.database(url)
            guard isDurable else {
                return Finding(
                    "database", .fail, found,
                    advice: "With fsync off, acknowledged changes are lost if its machine fails: set fsync = on")
            }
            return Finding("database", .ok, found)
        } catch is RoostServer.Unsupported {
            return missing("database")
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
        } catch is RoostServer.Unsupported {
            return missing("bus")
        } catch {
            return Finding("bus", .fail, "\(error)".safe(), advice: "Give an address as nats://host:4222")
        }
    }
}
