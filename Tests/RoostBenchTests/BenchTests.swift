import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostBench

/// Every part of `roost bench` runs, and reports all of its figures. Their sizes aren't checked here.
@Suite struct BenchTests {
    private struct Report: Decodable {
        struct Section: Decodable {
            let bench: String
            let figures: [Figure]
        }
        struct Figure: Decodable {
            let name: String
            let value: Double
            let floor: Double?
        }
        let sections: [Section]
    }

    private func figures(_ words: String, within deadline: Duration = .seconds(100)) async throws -> [Report.Figure] {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let run = try await CommandRun.roost(
            arguments: ["bench"] + words.split(separator: " ").map(String.init) + ["--smoke", "--json", "--on", directory.path],
            within: deadline)
        #expect(run.status == 0, "\(run.errors)")
        // No figure is infinite or NaN: JSON couldn't carry it.
        let sections = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8)).sections
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
        return sections.flatMap(\.figures)
    }

    /// The parts that run within a test's time, each with the number of its figures and of those with a floor. `BenchPartTests` finds omitted ones.
    static let figureCounts: [(String, Int, Int)] = [
        ("fanout", 11, 3), ("send", 11, 4), ("latency", 7, 4), ("spread", 8, 4), ("mixed", 12, 0), ("storm", 5, 0),
        ("idle", 6, 0), ("start", 5, 0),
        ("history", 9, 2), ("messages", 11, 6), ("live", 18, 7), ("resume", 5, 0),
        ("channels", 17, 4), ("sdk", 16, 2), ("effects", 10, 3), ("hostile", 36, 0), ("backup", 7, 2),
    ]

    @Test("each part of the benchmark runs to its end and reports its figures", arguments: BenchTests.figureCounts)
    func parts(part: String, count: Int, floors: Int) async throws {
        let figures = try await figures(part)
        #expect(figures.count == count && figures.compactMap(\.floor).count == floors)
        #expect(figures.filter { !$0.value.isFinite || $0.floor?.isFinite == false }.map(\.name) == [])
        #expect(Set(figures.map(\.name)).count == count)
        // The restored data is the same as before.
        #expect(figures.filter { $0.name.contains("differ") }.allSatisfy { $0.value == 0 })
    }

    #if Cluster
    // It starts its own PostgreSQL and NATS, and measures each of its parts for a second.
    @Test("the benchmark of a cluster runs to its end and reports its figures")
    func cluster() async throws {
        let figures = try await figures("cluster", within: .seconds(400))
        #expect(figures.count == 117 && figures.compactMap(\.floor).count == 11)
        #expect(figures.filter { !$0.value.isFinite || $0.floor?.isFinite == false }.map(\.name) == [])
        #expect(Set(figures.map(\.name)).count == figures.count)
    }
    #endif

    #if os(Linux)
    @Test("a killed benchmark leaves no server running and nothing on the disk")
    func killed() async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer {
            for server in Self.servers(on: directory) { kill(server.process, SIGKILL) }
            try? FileManager.default.removeItem(at: directory)
        }
        // It does nothing for half a minute.
        let run = try RunningCommand("bench idle --sockets 20 --json --on \(directory.path)")
        // By then the benchmark has started its server.
        try await eventually("a server with connections") {
            Self.servers(on: directory).contains { (ServerMetrics.value(of: "roost_sockets", port: $0.port) ?? 0) > 0 }
        }
        run.signal(SIGKILL)
        _ = try await run.end()
        try await eventually("the end of the server and of its directory") {
            let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            return Self.servers(on: directory).isEmpty && files.isEmpty
        }
    }

    /// The servers of benchmarks on a directory, by the command lines of all processes.
    private static func servers(on directory: URL) -> [(process: Int32, port: UInt16)] {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return entries.compactMap { Int32($0) }.compactMap { process -> (process: Int32, port: UInt16)? in
            // As BenchServer starts them: the program, `serve`, `--data` and the directory, `--port` and the port.
            let words = SystemFile.read("/proc/\(process)/cmdline").split(separator: "\0")
            guard words.count > 5, words[1] == "serve", words[3].hasPrefix("\(directory.path)/"), let port = UInt16(words[5])
            else { return nil }
            return (process: process, port: port)
        }
    }
    #endif

    @Test("other servers deliver the same messages beside it, all of Debian's and elsewhere the installed ones")
    func peers() async throws {
        let figures = try await figures("fanout --peers")
        let names = Set(figures.map(\.name))
        for peer in Peer.all {
            let isInstalled = Programs.find(peer.program) != nil
            #expect(isInstalled || !Self.installsPeers, "scripts/install-dependencies --cluster installs \(peer.package)")
            let reported = ["saturated", "16 under way", "single"].map { names.contains("\(peer.name): CPU per delivery, \($0)") }
            #expect(reported == Array(repeating: isInstalled, count: 3), "\(peer.name)")
        }
        let beside = figures.first { $0.name == "server CPU per delivery, 16 under way, beside Redis" }
        #expect(beside?.floor == figures.first { $0.name == "Redis: CPU per delivery, 16 under way" }?.value)
    }

    /// Whether `make test` installs the peers here.
    private static var installsPeers: Bool {
        #if Cluster && os(Linux)
        Programs.find("dpkg-query") != nil
        #else
        false
        #endif
    }

    @Test("make bench measures everything that roost bench all does")
    func allParts() throws {
        let source = try String(contentsOf: Self.root.appending(path: "scripts/bench-table"), encoding: .utf8)
        let list = try #require(source.firstMatch(of: #/\nALL = \[(.*)\]\n/#)).1
        let named: [String: BenchPart] = [
            "fanout": .fanout(), "send": .send, "latency": .latency, "idle": .idle(), "start": .start(), "history": .history,
            "messages": .messages, "live": .live(), "resume": .resume, "channels": .channels, "sdk": .sdk, "effects": .effects(),
        ]
        let parts = list.split(separator: ", ").map { named[$0.trimmingCharacters(in: ["\""])] }
        let names = parts.flatMap { $0?.benchmarks.map { type(of: $0).name } ?? ["unknown"] }
        #expect(names == BenchPart.all.benchmarks.map { type(of: $0).name })
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The page's table is between them.
    private static let marks = ("<!-- make bench writes from here -->", "<!-- to here -->")

    @Test("make bench writes the medians of its runs into the page, and keeps the rows of unmeasured parts")
    func table() async throws {
        let script = Self.root.appending(path: "scripts/bench-table").path
        let examples = try await CommandRun.program(script, arguments: ["--check"])
        #expect(examples.status == 0, "\(examples.output)")
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let page = directory.appending(path: "page.md")
        let marks = Self.marks
        let old = [
            "**resume**, **idle**: of Sunday", "**start**: of Monday", "**large channel**: of Tuesday",
            """
            | | measured | runs | floor | ratio | target | met |
            |---|---:|---|---:|---:|---|---|
            | **resume**: old | 1 |
            | **idle**: kept | 2 |
            | **start**: kept too | 3 |
            | **large channel**: older | 4 |
            """,
        ]
        try "# Page\n\n\(marks.0)\n\n\(old.joined(separator: "\n\n"))\n\n\(marks.1)\n\nend\n"
            .write(to: page, atomically: true, encoding: .utf8)
        let arguments = [
            "resume", "channels", "--smoke", "--runs", "2", "--program", ServerProcess.binary.path, "--on", directory.path,
            "--file", page.path,
        ]
        // Two parts are measured twice, one after the other, on a machine that may be busy.
        let run = try await CommandRun.program(script, arguments: arguments, within: .seconds(400))
        #expect(run.status == 0, "\(run.errors)")
        let text = try String(contentsOf: page, encoding: .utf8)
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| **") }
        #expect(rows.prefix(5).allSatisfy { $0.hasPrefix("| **resume**: ") })
        #expect(rows.dropFirst(5).prefix(2) == ["| **idle**: kept | 2 |", "| **start**: kept too | 3 |"])
        // One part may measure several things, whose names have spaces.
        let names = Set(rows.dropFirst(7).compactMap { $0.split(separator: "**").dropFirst().first })
        #expect(names == ["large channel", "channel list"])
        #expect(!text.contains("old") && text.hasSuffix("\(marks.1)\n\nend\n"))
        // Above the table is the time at which each part was measured, whatever was measured later.
        let reported = text.split(separator: "\n").filter { $0.hasPrefix("**") }
        #expect(reported.first?.hasPrefix("**resume**, **large channel**, **channel list**: Roost ") == true)
        #expect(reported.first?.contains("each figure the median of 2 runs") == true)
        #expect(reported.dropFirst() == ["**idle**: of Sunday", "**start**: of Monday"])
    }

    /// Real figures are tested above. Measuring would take minutes.
    @Test("make bench writes the costs of hostile sockets, backups and a cluster into the same table")
    func tableOfOthers() async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (page, program) = (directory.appending(path: "page.md"), directory.appending(path: "roost"))
        try "\(Self.marks.0)\n\(Self.marks.1)\n".write(to: page, atomically: true, encoding: .utf8)
        let answer = """
            {"version":"9","machine":{"cores":2,"processor":"P","kernel":"6.1.0","fsyncMedianMicroseconds":100,"fdatasyncMedianMicroseconds":50},
            "sections":[{"bench":"'$2'","figures":[{"name":"a '$2': cost","value":4,"unit":"µs","floor":2,"ratio":2,"target":"≤ 3","isMet":false}]}]}
            """
        try "#!/bin/sh\necho '\(answer)'\n".write(to: program, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
        let run = try await CommandRun.program(
            Self.root.appending(path: "scripts/bench-table").path,
            arguments: ["hostile", "backup", "cluster", "--runs", "1", "--program", program.path, "--file", page.path])
        #expect(run.status == 0, "\(run.errors)")
        let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").map(String.init)
        let rows = ["hostile", "backup", "cluster"].map { "| **\($0)**: a \($0): cost | 4 µs | 4 | 2 | 2 | ≤ 3 | **no** |" }
        #expect(lines.filter { $0.hasPrefix("| **") } == rows)
        #expect(lines.contains { $0.hasPrefix("**hostile**, **backup**, **cluster**: Roost 9, commit ") })
    }

    @Test(
        "make bench builds with PostgreSQL and NATS, and installs them, only if it measures a cluster",
        arguments: [("", "Server", "--peers"), ("send fanout", "Server", "--peers"), ("send cluster", "Cluster", "--cluster")])
    func build(parts: String, trait: String, installed: String) async throws {
        // It only prints what it would run.
        let run = try await CommandRun.program(
            "/usr/bin/env", arguments: ["make", "-n", "-C", Self.root.path, "bench", "PARTS=\(parts)"])
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.output.contains(" --traits \(trait) "), "\(run.output)")
        #expect(run.output.contains("install-dependencies \(installed)\n"), "\(run.output)")
    }

    @Test(
        "no user changes their visibility more often than allowed in a minute", arguments: [BenchScale.full, .quick, .smoke])
    func presenceRounds(scale: BenchScale) {
        let rounds = CrowdBenchmark.presenceRounds(scale)
        #expect(rounds > 0 && 2 * rounds <= Limits.presenceChangesPerMinute)
    }

    @Test(
        "marks are sent in the small channel that a large one is compared with", arguments: [BenchScale.full, .quick, .smoke])
    func smallCrowd(scale: BenchScale) {
        let members = CrowdBenchmark.smallMembers(scale)
        #expect(Set(members).count == members.count && members.count <= Limits.largeChannelMembers)
    }

    @Test("in the mixed load each member of each channel sends and marks, and each channel is opened")
    func mixedSteps() {
        let (channelCount, memberCount) = (200, 50)
        let steps = (0..<channelCount * memberCount).map {
            MixedLoad.step($0, channelCount: channelCount, memberCount: memberCount)
        }
        let senders = Set(steps.map { [$0.channel, $0.sender] })
        let markers = Set(steps.flatMap { step in step.markers.map { [step.channel, $0] } })
        #expect(senders.count == channelCount * memberCount && markers == senders)
        let opening = steps.filter { $0.opener != nil }
        #expect(opening.count == steps.count / 10 && Set(opening.map(\.channel)).count == channelCount)
        // No user does two things with one message.
        let doing = steps.map { step in Set(step.markers + [step.sender, step.opener ?? -1]) }
        #expect(doing.allSatisfy { $0.count == 4 })
    }

    @Test("besides reading pages from all over the database, messages are sent to each channel, and each is read")
    func spreadCalls() {
        let channelCount = 200
        let calls = (0..<4 * channelCount).map { SpreadBenchmark.call($0, channelCount: channelCount, sendingEvery: 4) }
        let (sends, pages) = (calls.filter { $0.isSend }, calls.filter { !$0.isSend })
        #expect(sends.count == channelCount && Set(sends.map { $0.channel }).count == channelCount)
        #expect(Set(pages.map { $0.channel }).count == channelCount)
        let alone = (0..<channelCount).map { SpreadBenchmark.call($0, channelCount: channelCount, sendingEvery: nil) }
        #expect(alone.allSatisfy { !$0.isSend } && Set(alone.map { $0.channel }).count == channelCount)
    }

    @Test("a load with many messages in progress continues for as long as set, however long that is")
    func longLoad() async throws {
        // The directory ends the server even if this process is killed.
        let run = try RunDirectory(in: FileManager.default.temporaryDirectory)
        defer { withExtendedLifetime(run) {} }
        let compared = try await ComparedServer(ServerProcess.binary, in: run.url, users: 2) { _ in "fanout" }
        defer { compared.end() }
        let load = FanoutLoad(channel: "fanout")
        let measured = try load.run(compared.loop, compared.server, window: 8, seconds: 3, slackSeconds: 2)
        #expect(measured.deliveriesPerSecond > 0)
    }

    @Test("a compared cost of many channels names the number of channels made", arguments: [BenchScale.full, .quick, .smoke])
    func comparedChannels(scale: BenchScale) {
        let names = [ResumeBenchmark.costs(scale)[0].name, ChannelListBenchmark.costs(scale)[0].name]
        #expect(names.allSatisfy { $0.hasSuffix(" of \(ComparedServer.channels(scale).count) channels") }, "\(names)")
    }

    @Test("the benchmark compares costs with another build of roost, here with itself")
    func against() async throws {
        struct Report: Decodable {
            struct Cost: Decodable {
                let name: String
                let runs: [Double]
                let otherRuns: [Double]
                let median: Double
                let otherMedian: Double
            }
            let costs: [Cost]
        }
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let run = try await CommandRun.roost(
            arguments: ["bench", "--against", ServerProcess.binary.path, "--smoke", "--json", "--on", directory.path],
            within: .seconds(100))
        #expect(run.status == 0, "\(run.errors)")
        let costs = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8)).costs
        #expect(
            costs.map(\.name) == [
                "server CPU per delivery, 8 under way", "server CPU per delivery, single", "delivery p50, single",
                "server CPU per send", "RSS per idle connection",
                "server CPU per connection made", "server CPU per page of 50", "server CPU per page of 50, 8 under way",
                "server CPU per call that reads next to nothing", "server CPU per resume of 20 channels",
                "server CPU per first page of 20 channels", "server CPU per total unread count",
            ])
        #expect(costs.allSatisfy { $0.runs.count == 1 && $0.otherRuns.count == 1 && $0.median.isFinite && $0.otherMedian.isFinite })
    }

    @Test(
        "a program that can't be run, or a part without comparison, is refused",
        arguments: ["send --against /nowhere/roost", "start --against /bin/true", "send --quick"])
    func refusals(words: String) async throws {
        let run = try await CommandRun.roost(
            arguments: ["bench"] + words.split(separator: " ").map(String.init) + ["--smoke", "--json"], within: .seconds(20))
        #expect(run.status != 0 && run.output == "")
    }

    @Test(
        "an impossible count is a mistake in the command, reported by its option",
        arguments: [
            ("idle --sockets=-1", "--sockets"), ("idle --sockets 0", "--sockets"), ("fanout --sockets 0", "--sockets"),
            ("fanout --sockets \(Int.max)", "--sockets"), ("live --sockets 3", "--sockets"), ("hostile --sockets 0", "--sockets"),
            ("storm --clients 0", "--clients"), ("start --messages=-1", "--messages"), ("backup --messages=-1", "--messages"),
            ("effects --waiting=-1", "--waiting"), ("cluster --idle 0", "--idle"), ("cluster --seconds 0", "--seconds"),
            ("cluster --sockets 1", "--sockets"),
        ])
    func counts(words: String, option: String) async throws {
        let run = try await CommandRun.roost(
            arguments: ["bench"] + words.split(separator: " ").map(String.init) + ["--smoke", "--json"], within: .seconds(20))
        #expect(run.status == 64 && run.output == "" && run.errors.contains("\(option) must be a number from "), "\(run.errors)")
    }

    @Test("a missing directory is refused by its name, and not made, and so is a file")
    func missingDirectory() async throws {
        let directory = TemporaryDirectory.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        for path in [directory.path, #filePath] {
            let run = try await CommandRun.roost(
                arguments: ["bench", "send", "--on", path, "--smoke", "--json"], within: .seconds(20))
            #expect(run.status == 64 && run.output == "", "\(path)")
            #expect(run.errors.contains("--on must be a directory; there is none at \(path)."), "\(run.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: directory.path))
    }
}
