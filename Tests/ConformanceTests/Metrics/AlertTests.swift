import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostServer

/// The alert rules of the documentation, evaluated on pages of real servers: silent on a good one, and each firing on a bad one.
@Suite struct AlertTests {
    private static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/operations/alerts.yml")

    private let alerts: AlertRules

    init() throws { alerts = try AlertRules(try String(contentsOf: Self.file, encoding: .utf8)) }

    @Test("each rule names metrics, labels and label values that the catalog has")
    func names() {
        #expect(Set(alerts.rules.map(\.name)).count == alerts.rules.count && alerts.rules.count >= 10)
        for rule in alerts.rules {
            #expect(["warning", "critical"].contains(rule.severity))
            for name in rule.expression.metrics where name != "up" {
                let base = name.hasSuffix("_bucket") ? String(name.dropLast(7)) : name
                #expect(MetricCatalog.byName[base] != nil, "\(rule.name): \(name)")
            }
            for (metric, matcher) in rule.expression.matchers where metric != "up" {
                let label = MetricCatalog.byName[metric]?.labels.first { $0.name == matcher.label }
                let missing = matcher.value.split(separator: "|").filter { label?.values.contains(String($0)) != true }
                #expect(missing == [], "\(rule.name): \(matcher)")
            }
        }
    }

    /// The page with `up`, which Prometheus itself adds.
    private func scrape(_ server: WatchedServer, isUp: Bool = true) async throws -> String {
        try await server.request("GET", "/metrics").body
            + "# HELP up Whether the server answered.\n# TYPE up gauge\nup{job=\"roost\"} \(isUp ? 1 : 0)\n"
    }

    @Test(
        "a healthy server fires no alert; refused tokens and connections near the limit fire theirs",
        .timeLimit(.minutes(5)))
    func onAServer() async throws {
        let server = try await WatchedServer.start(arguments: ["--connections-max", "10"])
        let first = try MetricsText(try await scrape(server))
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general", type: "community"))
        for number in 0..<20 {
            try await socket.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "hello"))
        }
        _ = try await server.request("GET", "/v1/me", token: "no.token.this")
        let good = try MetricsText(try await scrape(server))
        // On a busy machine one slow commit fires the rules for times, which are tested below.
        func firing(_ before: MetricsText, _ after: MetricsText, seconds: Double = 60) throws -> [String] {
            try alerts.firing(before, after, seconds: seconds).filter { !["RoostSlowCommits", "RoostSlowQueue"].contains($0) }
        }
        #expect(try firing(first, good) == [])

        for _ in 0..<60 { _ = try await server.request("GET", "/v1/me", token: "no.token.this") }
        var held: [RawSocket] = []
        for _ in 0..<8 { held.append(try await RawSocket.open(port: server.port)) }
        let bad = try MetricsText(try await scrape(server))
        #expect(try firing(good, bad, seconds: 5) == ["RoostConnectionsNearLimit", "RoostAuthenticationsRefused"])
        for socket in held + [socket] { await socket.close() }
        try await server.stop()
    }

    /// States that a test can't bring a server into: lines of its page, and their values in a bad hour.
    private static let bad: [(alert: String, lines: [(String, String)])] = [
        ("RoostDown", [(#"up{job="roost"} 1"#, #"up{job="roost"} 0"#)]),
        ("RoostNotReady", [("roost_ready 1", "roost_ready 0")]),
        ("RoostOperationsLost", [("roost_write_operations_lost_total 0", "roost_write_operations_lost_total 17")]),
        ("RoostDatabaseDamaged", [("roost_database_damage_total 0", "roost_database_damage_total 3")]),
        ("RoostCheckpointsHeldUp", [("roost_checkpoints_incomplete_total 0", "roost_checkpoints_incomplete_total 50")]),
        (
            "RoostInternalErrors",
            [
                (
                    #"roost_refusals_total{operation="none",code="internal_error"} 0"#,
                    #"roost_refusals_total{operation="none",code="internal_error"} 2"#
                )
            ]
        ),
        (
            "RoostOverloaded",
            [
                (
                    #"roost_refusals_total{operation="none",code="overloaded"} 0"#,
                    #"roost_refusals_total{operation="none",code="overloaded"} 600"#
                )
            ]
        ),
        (
            "RoostOpenFilesNearLimit",
            [("process_open_fds \\d+", "process_open_fds 900000"), ("process_max_fds \\d+", "process_max_fds 1000000")]
        ),
        ("RoostLogTooLarge", [("roost_database_log_bytes \\d+", "roost_database_log_bytes 183500800")]),
        ("RoostMemory", [("process_resident_memory_bytes \\d+", "process_resident_memory_bytes 3000000000")]),
        ("RoostClientsTooSlow", [(#"roost_socket_closes_total{code="4008"} 0"#, #"roost_socket_closes_total{code="4008"} 900"#)]),
        ("RoostEffectsDead", [("roost_effects_dead 0", "roost_effects_dead 1")]),
        ("RoostEffectsLate", [(#"roost_effects_late_seconds [0-9.]+\d*"#, "roost_effects_late_seconds 90")]),
        ("RoostBusDown", [("roost_cluster_bus_connected 1", "roost_cluster_bus_connected 0")]),
        ("RoostNodesMissing", [("roost_cluster_nodes 3", "roost_cluster_nodes 2")]),
        ("RoostSlowCommits", slow("roost_write_batch_seconds", "")),
        ("RoostSlowQueue", slow("roost_queue_wait_seconds", #"queue="read""#)),
    ]

    /// A hundred values between 2.5 and 5 seconds.
    private static func slow(_ name: String, _ label: String) -> [(String, String)] {
        let buckets = ["5", "10", "+Inf"].map { bound in
            "\(name)_bucket{\([label, "le=\"\(bound)\""].filter { !$0.isEmpty }.joined(separator: ","))}"
        }
        return (buckets + ["\(name)_count\(label.isEmpty ? "" : "{\(label)}")"]).map { series in
            (NSRegularExpression.escapedPattern(for: series) + " (\\d+)", "\(series) 1$1")
        }
    }

    @Test("each alert is fired by its own line, and by nothing else")
    func eachAlone() async throws {
        let server = try await WatchedServer.start()
        let socket = try await server.socket("ann")
        _ = try await socket.call(GetMe())
        // A node of a cluster of three, which has had each refusal before, and has checked once for due effects.
        var page = try await Polling.value {
            try await scrape(server)
        } until: {
            $0.contains("\nroost_effects_dead 0")
        }
        await socket.close()
        try await server.stop()
        for (name, lines) in [
            ("roost_refusals_total", [#"{operation="none",code="internal_error"} 0"#, #"{operation="none",code="overloaded"} 0"#]),
            ("roost_socket_closes_total", [#"{code="4008"} 0"#]),
            ("roost_cluster_bus_connected", [" 1"]), ("roost_cluster_nodes", [" 3"]),
        ] {
            page = page.replacing(try Regex("(# TYPE \(name) [a-z]+\n)(?:\(name).*\n)*")) { match in
                "\(page[match.range].split(separator: "\n")[0])\n" + lines.map { name + $0 + "\n" }.joined()
            }
        }
        let good = try MetricsText(page)
        #expect(try alerts.firing(good, good) == [])
        for (alert, lines) in Self.bad {
            var text = page
            for (old, new) in lines {
                let isPattern = old.contains("\\d")
                let changed = text.replacingOccurrences(of: old, with: new, options: isPattern ? .regularExpression : [])
                #expect(changed != text, "\(alert): \(old)")
                text = changed
            }
            #expect(try alerts.firing(good, try MetricsText(text)) == [alert])
        }
        let untested = Set(alerts.rules.map(\.name)).subtracting(Self.bad.map(\.alert))
        #expect(untested == ["RoostConnectionsNearLimit", "RoostAuthenticationsRefused"])
    }
}
