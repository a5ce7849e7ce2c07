import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// How many HTTP requests one user may have in progress.
@Suite struct RequestLimitTests {
    private static let bodySizeBytes = 10_000

    /// The two halves of a request that creates a channel and has a body of ``bodySizeBytes``.
    private static func halves(creating channel: ChannelID, token: String) -> (first: String, second: String) {
        let head = [
            "POST /v1/channels HTTP/1.1", "Host: 127.0.0.1", "Connection: close", "Authorization: Bearer \(token)",
            "Content-Type: application/json", "Content-Length: \(bodySizeBytes)",
        ]
        let body = #"{"channel":"\#(channel.rawValue)"}"#
        let space = String(repeating: " ", count: bodySizeBytes - body.utf8.count)
        return (head.joined(separator: "\r\n") + "\r\n\r\n", body + space)
    }

    @Test("I21 I18 a request beyond a user's limit in progress is refused, logged and counted, until one of them has ended")
    func requestsOfUser() async throws {
        let server = try await WatchedServer.start(arguments: ["--requests-per-user", "3"])
        let token = try await server.token("ann")
        var inFlight: [(connection: RawConnection, rest: String)] = []
        for number in 1...3 {
            let (first, second) = Self.halves(creating: ChannelID("channel-\(number)"), token: token)
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.send(first)
            inFlight.append((connection, second))
        }
        // A body counts as soon as its request is admitted.
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? 0
        } until: {
            $0 >= Double(3 * Self.bodySizeBytes)
        }

        let refused = try await server.request("GET", "/v1/me", token: token)
        #expect([String(refused.status), refused.code, refused.headers["retry-after"]] == ["503", "overloaded", "1"])
        // Others, and admins, aren't limited by it.
        let others = [try await server.token("bob"), try await server.token("ann", role: .admin)]
        for other in others { #expect(try await server.request("GET", "/v1/me", token: other).status == 200) }
        let page = try await server.metrics()
        let counted = [
            page.value("roost_overloaded_total", ["budget": "user"]),
            page.value("roost_refusals_total", ["operation": GetMe.name, "code": "overloaded"]),
        ]
        #expect(counted == [1, 1])
        let lines = server.log.split(separator: "\n")
        #expect(lines.contains { $0.contains("limit=requests-per-user") && $0.contains("user=ann") })

        for (connection, rest) in inFlight {
            try await connection.send(rest)
            let answer = try TestServer.parse(await connection.receiveAll())
            #expect(answer.status == 200)
            await connection.close()
        }
        try await Polling.value {
            try await server.request("GET", "/v1/me", token: token).status
        } until: {
            $0 == 200
        }
        try await server.stop()
    }
}
