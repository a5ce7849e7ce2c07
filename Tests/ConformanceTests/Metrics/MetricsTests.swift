import CoreMetrics
import Foundation
import RoostAPI
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// The page `/metrics` of a real server, read strictly.
@Suite struct MetricsTests {
    /// Some of everything that is counted: sockets of every state, sends, refusals, valid and invalid tokens.
    private func makeTraffic(on server: WatchedServer) async throws -> [RawSocket] {
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "general", type: "community"))
        let bob = try await server.socket("bob")
        try await bob.call(JoinChannel(channel: "general"))
        for number in 1...3 { try await ann.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "hello")) }
        _ = try? await bob.call(GetChannel(channel: "none"))
        let token = try await server.token("ann")
        _ = try await server.request("GET", "/v1/channels/general", token: token)
        _ = try await server.request("GET", "/v1/channels/general?limit=x", token: token)
        _ = try await server.request("GET", "/v1/me", token: try await server.token("ann", expiresIn: -5))
        _ = try await server.request("GET", "/v1/me")
        let silent = try await RawSocket.open(port: server.port)
        let refused = try await RawSocket.open(port: server.port)
        try await refused.send(json: AuthenticateFrame(token: "no.token.this"))
        while await refused.next() != .end {}
        return [ann, bob, silent, refused]
    }

    @Test("/metrics is text that a strict reader accepts, and shows what happened", .timeLimit(.minutes(5)))
    func counts() async throws {
        let server = try await WatchedServer.start()
        let fresh = try await server.metrics()
        #expect(fresh.families.map(\.name) == MetricCatalog.all.map(\.name))
        let sockets = try await makeTraffic(on: server)
        // The end of a connection is counted a moment after its client knows. The requesting one is open.
        func hasEnded(_ page: MetricsText) -> Bool {
            let closed: Double? = page.value("roost_socket_closes_total", ["code": "4001"])
            let (sockets, requests) = (page.value("roost_sockets"), page.value("roost_connections", ["state": "http"]))
            return closed == 1 && sockets == 3 && requests == 1
        }
        let page = try await Polling.value {
            try await server.metrics()
        } until: {
            hasEnded($0)
        }
        #expect(page.families.map(\.name) == MetricCatalog.all.map(\.name))

        func counts(_ series: [(String, [String: String])]) -> [Double?] { series.map { page.value($0, $1) } }
        #expect(
            counts([
                ("roost_connections", ["state": "authenticated"]), ("roost_connections", ["state": "unauthenticated"]),
                ("roost_sockets", [:]), ("roost_socket_closes_total", ["code": "4001"]),
                ("roost_operations_total", ["operation": "message.send"]),
                ("roost_operations_total", ["operation": "channel.get"]),
                ("roost_refusals_total", ["operation": "channel.get", "code": "not_found"]),
                ("roost_refusals_total", ["operation": "channel.get", "code": "invalid_argument"]),
                ("roost_authentications_total", ["transport": "socket", "result": "ok"]),
                ("roost_authentications_total", ["transport": "socket", "result": "unauthenticated"]),
                ("roost_authentications_total", ["transport": "http", "result": "ok"]),
                ("roost_authentications_total", ["transport": "http", "result": "token_expired"]),
                ("roost_authentications_total", ["transport": "http", "result": "unauthenticated"]),
                ("roost_ready", [:]), ("roost_write_operations_lost_total", [:]),
                ("roost_build_info", ["version": RoostVersion.current]),
            ]) == [2, 1, 3, 1, 3, 2, 1, 1, 2, 1, 2, 1, 1, 1, 0, 1])

        // Values that can't be predicted exactly are present and positive.
        for name in [
            "roost_events_total", "roost_deliveries_total", "roost_sent_bytes_total", "roost_socket_writes_total",
            "roost_write_batches_total",
            "roost_write_batch_seconds_count", "roost_write_batch_size_sum", "roost_read_operations_total",
            "roost_connections_accepted_total", "roost_connections_max", "roost_database_bytes", "roost_database_log_bytes",
            "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds",
        ] {
            #expect(page.value(name) ?? 0 > 0, "\(name)")
        }
        let waits = ["read", "write"].map { page.value("roost_queue_wait_seconds_count", ["queue": $0]) ?? 0 }
        #expect(waits.allSatisfy { $0 > 0 } && page.value("roost_queue_length", ["queue": "write"]) == 0)
        // Each connection counts as one: those of the requests above are closed, the requesting one is open.
        #expect(page.value("roost_connections", ["state": "http"]) == 1)
        for socket in sockets { await socket.close() }
        try await server.stop()
    }

    @Test("requests that HTTP refuses before any operation runs are counted, with the operation if one was named")
    func refusedRequests() async throws {
        let server = try await WatchedServer.start()
        let token = try await server.token("ann")
        func ask(_ method: String, _ path: String, _ headers: [String] = [], body: String? = nil) async throws -> Int {
            try await TestServer.request(method, path, port: server.port, token: token, body: body, headers: headers).status
        }
        let statuses = [
            try await ask("GET", "/v1/nothing"), try await ask("DELETE", "/v1/me"), try await ask("GET", "/v1/me", ["Host: b"]),
            try await ask("GET", "/v1/me", ["Content-Length: 2000000"]),
            try await ask("POST", "/v1/channels", ["Content-Type: text/plain"], body: "{}"),
            try await ask("GET", "/v1/channels/x", ["Roost-Act-As: bob"]),
        ]
        #expect(statuses == [404, 405, 400, 413, 415, 403])
        let page = try await server.metrics()
        let counted = [
            ("none", "unknown_operation"), ("none", "invalid_argument"), ("none", "limit_exceeded"),
            ("channel.create", "invalid_argument"), ("channel.get", "not_permitted"),
        ].map { page.value("roost_refusals_total", ["operation": $0.0, "code": $0.1]) }
        #expect(counted == [2, 1, 1, 1, 1])
        try await server.stop()
    }

    @Test("calls refused by a rate limit are counted as refusals of their operation, over both transports")
    func rateLimitedCalls() async throws {
        let server = try await WatchedServer.start()
        let ann = try await server.socket("ann")
        // Some are refused even if a new minute begins among them.
        let calls = (0..<2 * Limits.signOutsPerMinute + 10).map { _ in SignOutDevice(device: "phone") }
        var refusedCount = try await ann.refusals(of: calls).count { $0?.code == .rateLimited }
        let token = try await server.token("ann")
        for _ in 0..<2 {
            let answer = try await server.request("POST", "/v1/me/devices/phone/sign-out", token: token)
            if answer.code == "rate_limited" { refusedCount += 1 }
        }
        #expect(refusedCount >= 10)
        let page = try await server.metrics()
        let labels = ["operation": SignOutDevice.name, "code": "rate_limited"]
        #expect(page.value("roost_refusals_total", labels) == Double(refusedCount))
        await ann.close()
        try await server.stop()
    }

    @Test("a socket closed by its client is counted by the client's code, with all codes of apps and libraries together")
    func clientCloses() async throws {
        let server = try await WatchedServer.start()
        for code in [1000, 1001, 1008, 3000, 4000, 4999] as [UInt16] {
            let socket = try await server.socket("ann")
            try await socket.connection.send(RawSocket.frame(opcode: 8, [UInt8(code >> 8), UInt8(code & 255)]))
            while await socket.next() != .end {}
        }
        // Without a code the server's counts, which answers with 1000.
        let socket = try await server.socket("ann")
        try await socket.connection.send(RawSocket.frame(opcode: 8, []))
        while await socket.next() != .end {}
        func counts(_ page: MetricsText) -> [Double] {
            ["1000", "1001", "1008", "other"].map { page.value("roost_socket_closes_total", ["code": $0]) ?? 0 }
        }
        try await Polling.value {
            counts(try await server.metrics())
        } until: {
            $0 == [2, 1, 1, 3]
        }
        try await server.stop()
    }

    @Test("the process is measured once a second, however often the page is requested")
    func processReadings() {
        let start = ContinuousClock.now
        let elapsed = Mutex(Duration.zero)
        let count = Mutex(0)
        let process = ProcessSamples(
            now: { start + elapsed.withLock { $0 } },
            read: {
                count.withLock { $0 += 1 }
                return [MetricSample("process_open_fds", 7)]
            })
        for _ in 0..<100 { #expect(process.samples.count == 1) }
        elapsed.withLock { $0 = .milliseconds(999) }
        _ = process.samples
        #expect(count.withLock { $0 } == 1)
        elapsed.withLock { $0 = .seconds(1) }
        for _ in 0..<100 { _ = process.samples }
        #expect(count.withLock { $0 } == 2)
    }

    @Test("ids chosen by clients never become labels, whatever is requested")
    func boundedLabels() async throws {
        let server = try await WatchedServer.start()
        let token = try await server.token("ann")
        for number in 0..<20 {
            _ = try await server.request("GET", "/v1/channels/some-\(number)", token: token)
            _ = try await server.request("GET", "/v1/never/some-\(number)", token: token)
            _ = try await server.request("GET", "/v1/me", token: "some-\(number)")
        }
        let socket = try await server.socket("ann")
        for number in 0..<20 { try await socket.send(text: #"{"call":\#(number),"operation":"some.\#(number)","with":{}}"#) }
        for _ in 0..<20 { _ = await socket.next() }
        let page = try await server.metrics()
        #expect(page.samples.filter { $0.labels.values.contains { $0.contains("some") } } == [])
        #expect(page.value("roost_refusals_total", ["operation": "none", "code": "unknown_operation"]) == 40)
        await socket.close()
        try await server.stop()
    }

    @Test("whatever is counted, the page can be read, and unlisted label values become one")
    func hostileNames() throws {
        let registry = PrometheusRegistry()
        for value in ["plain", "with \"quotes\"", "back\\slash", "two\nlines", "\u{1F600}", ""] {
            registry.makeCounter(label: "1 odd name-\u{e9}", dimensions: [("odd label", value)]).increment(by: 1)
            registry.makeCounter(label: "roost_socket_closes_total", dimensions: [("code", value), ("more", value)]).increment(
                by: 2)
        }
        registry.makeTimer(label: "roost_write_batch_seconds", dimensions: []).recordNanoseconds(3_000_000)
        registry.makeTimer(label: "roost_write_batch_seconds", dimensions: []).recordNanoseconds(60_000_000_000)
        registry.makeRecorder(label: "some_gauge", dimensions: [], aggregate: false).record(-.infinity)
        registry.makeRecorder(label: "some_size", dimensions: [], aggregate: true).record(Int64(7))
        let page = try MetricsText(PrometheusPage(registry.samples).text)
        #expect(page.value("roost_socket_closes_total", ["code": "other"]) == 12)
        #expect(page.samples.filter { $0.name == "_1_odd_name__" }.count == 6)
        #expect(page.value("_1_odd_name__", ["odd_label": "two\nlines"]) == 1)
        #expect(page.value("some_gauge") == -.infinity)
        let buckets = ["0.0025", "0.005", "10", "+Inf"].map { page.value("roost_write_batch_seconds_bucket", ["le": $0]) }
        #expect(buckets == [0, 1, 1, 2] && page.value("roost_write_batch_seconds_sum") == 60.003)
    }

    @Test("the page has at most 5,000 series, and counting beyond them does no harm")
    func seriesMax() throws {
        let registry = PrometheusRegistry()
        for number in 0...5000 { registry.makeCounter(label: "some", dimensions: [("number", "\(number)")]).increment(by: 1) }
        let page = try MetricsText(PrometheusPage(registry.samples).text)
        let found = [page.value("some", ["number": "4999"]), page.value("some", ["number": "5000"])]
        #expect(found == [1, nil])
    }

    @Test(
        "these tests' reader refuses pages that Prometheus would refuse, and some that it would accept",
        arguments: [
            "# TYPE a counter\na 1\n", "# HELP a h\na 1\n", "# HELP a h\n# TYPE a counter\nb 1\n",
            "# HELP a h\n# TYPE a counter\na 1",
            "# HELP a h\n# TYPE a counter\na 1\na 1\n", "# HELP a h\n# TYPE a counter\na{x=\"\n\"} 1\n",
            "# HELP a h\n# TYPE a counter\na{x=\"\\q\"} 1\n", "# HELP a h\n# TYPE a counter\na -1\n",
            "# HELP a h\n# TYPE a counter\na inf\n", "# HELP a h\n# TYPE a counter\na{1x=\"\"} 1\n",
            "# HELP a \n# TYPE a counter\na 1\n",
            "# HELP a h\n# TYPE a counter\na{x=\"1\",x=\"2\"} 1\n", "# HELP a h\n# TYPE a counter\n\na 1\n",
            "# HELP a h\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
            "# HELP a h\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
            "# HELP a h\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 2\na_sum 1\na_count 1\n",
            "# HELP a h\n# TYPE a gauge\na 1\n# HELP a h\n# TYPE a gauge\na{x=\"\"} 1\n",
        ])
    func strictness(text: String) {
        #expect(throws: MetricsText.Malformed.self) { try MetricsText(text) }
    }
}
