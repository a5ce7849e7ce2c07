import Testing

@testable import RoostCommand
@testable import RoostServer

/// The findings of `roost doctor` in a server's metrics.
@Suite struct MetricsCheckTests {
    @Test(
        "connections refused at any limit are a warning that names the setting",
        arguments: ConnectionCounts.Refusal.allCases)
    func refusedConnections(reason: ConnectionCounts.Refusal) throws {
        let page = ConnectionCounts.Refusal.allCases.map { other in
            #"roost_connections_refused_total{reason="\#(other)"} \#(other == reason ? 7 : 0)"#
        }
        let findings = MetricsCheck(page.joined(separator: "\n")).findings()
        let finding = try #require(findings.first { $0.check == "refused connections" })
        #expect(finding.result == .warn)
        let setting = try #require(finding.found.wholeMatch(of: #/7 over ([a-z-]+) since the start/#)?.1)
        #expect(Setting.all.contains { $0.name == setting })
    }

    @Test("effects that a server couldn't read since its start are a warning after a minute, and until then not said to be fine")
    func unreadableEffects() {
        let results = ["6", "75"].map { late in
            MetricsCheck("roost_effects_late_seconds \(late)").findings().filter { $0.check == "effects" }.map(\.result)
        }
        #expect(results == [[], [.warn]])
    }
}
