import Foundation

/// Checks a running server's `/metrics`: whether it had to refuse anything, and how close to its limits it is.
struct MetricsCheck {
    private let values: [String: Double]
    /// Refused connections, by the limit reached.
    private let refused: [String: Double]

    /// - Parameter page: The text of `/metrics`.
    init(_ page: String) {
        var values: [String: Double] = [:]
        var refused: [String: Double] = [:]
        for line in page.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            guard parts.count == 2, let value = Double(parts[1]) else { continue }
            // Series of one metric are added up: the sum shows whether anything happened.
            if let reason = parts[0].wholeMatch(of: #/roost_connections_refused_total\{reason="([a-z]+)"\}/#), value > 0 {
                refused[String(reason.1)] = value
            }
            values[String(parts[0].prefix { $0 != "{" }), default: 0] += value
        }
        self.values = values
        self.refused = refused
    }

    /// When the server's process started, in Unix seconds.
    var startedAt: Double? { values["process_start_time_seconds"] }

    func findings() -> [Finding] {
        [lost(), damage(), effects(), connections(), refusedConnections(), files()].compactMap { $0 }
    }

    private func lost() -> Finding? {
        guard let lost = values["roost_write_operations_lost_total"] else { return nil }
        guard lost > 0 else { return Finding("stored operations", .ok, "none was refused because the database failed") }
        return Finding(
            "stored operations", .fail, "\(Int(lost)) were refused since the start because the database failed",
            advice: "The server's log says why: check the free space, and the disk for errors")
    }

    private func damage() -> Finding? {
        guard let damage = values["roost_database_damage_total"], damage > 0 else { return nil }
        return Finding(
            "damaged pages", .fail,
            "\(Int(damage)) operations, backups or reads of effects needed a damaged page of the database, and failed",
            advice: "Restore a backup, and check the disk")
    }

    private func effects() -> Finding? {
        guard let late = values["roost_effects_late_seconds"] else { return nil }
        // Unknown to a server that couldn't read them since its start.
        let dead = values["roost_effects_dead"] ?? 0
        guard dead == 0 else {
            return Finding(
                "effects", .warn, "\(Int(dead)) failed permanently and aren't retried",
                advice: "roost effects lists them, and roost effects retry tries them again; the server's log says why they failed")
        }
        guard values["roost_effects_unknown_kinds"] ?? 0 == 0 else {
            return Finding(
                "effects", .warn, "some are of kinds that this version doesn't know and are waiting",
                advice: "A newer version wrote them: start that one")
        }
        guard late < Self.lateSecondsMax else {
            return Finding(
                "effects", .warn, "one has been due, or none could be read, for \(Int(late)) s",
                advice: "The server is overloaded, or its database can't be read: see its log")
        }
        guard values["roost_effects_dead"] != nil else { return nil }
        return Finding("effects", .ok, "none failed permanently, none is late")
    }

    /// In a healthy server due effects wait for milliseconds.
    private static let lateSecondsMax = 60.0

    private func connections() -> Finding? {
        guard let open = values["roost_connections"], let limit = values["roost_connections_max"], limit > 0 else { return nil }
        let found = "\(Int(open)) of \(Int(limit))"
        guard open / limit <= 0.8 else {
            return Finding(
                "connections", .warn, found,
                advice: "Raise connections-max and the limit on open files, or see their states in /metrics")
        }
        return Finding("connections", .ok, found)
    }

    private func refusedConnections() -> Finding? {
        guard values["roost_connections_refused_total"] != nil else { return nil }
        let limits = [
            ("total", "connections-max"), ("address", "unauthenticated-connections-per-address"), ("user", "connections-per-user"),
            ("memory", "memory-limit"),
        ]
        let reached = limits.compactMap { reason, setting in refused[reason].map { "\(Int($0)) over \(setting)" } }
        guard !reached.isEmpty else { return Finding("refused connections", .ok, "none since the start") }
        return Finding(
            "refused connections", .warn, "\(reached.joined(separator: ", ")) since the start",
            advice:
                "The server's log names addresses and users. Behind a proxy, name it with --trusted-proxies; otherwise raise the limit"
        )
    }

    private func files() -> Finding? {
        guard let open = values["process_open_fds"], let limit = values["process_max_fds"], limit > 0,
            let connections = values["roost_connections_max"]
        else { return nil }
        let found = "\(Int(open)) of \(Int(limit)) that the server may have"
        guard limit >= connections else {
            return Finding(
                "open files of the process", .warn, "\(found), and connections-max is \(Int(connections))",
                advice: "At the limit nobody can connect: raise it (LimitNOFILE in a systemd unit), or lower connections-max")
        }
        guard open / limit <= 0.8 else {
            return Finding("open files of the process", .warn, found, advice: "At the limit nobody can connect: raise it")
        }
        return Finding("open files of the process", .ok, found)
    }
}
