import Foundation
import NIOCore
import RoostAPI
import RoostCore
import RoostDatabase
import RoostServer
import RoostTestSupport
import Testing

/// Clients that end their half of a connection, or all of it, within a request or right after it.
@Suite struct EndingClientTests {
    private static let create = #"{"type":"group"}"#
    /// Unfinished requests for a new channel, and whether the mistake is evident before more bytes arrive.
    private static let brokenOff: [(framing: String, body: String, isEvidentAtOnce: Bool)] = [
        ("Content-Length: 60", "", false),
        ("Content-Length: 500", #"{"type":"group","channel":"group:broken"}"#, false),
        ("Transfer-Encoding: chunked", "10\r\n\(create)\r\n", false),
        ("Transfer-Encoding: chunked", "10\r\n\(create)\r\nZZ\r\n", true),
    ]

    private static func channels(of server: TestServer) throws -> [String] {
        try SQLiteDatabase(directory: server.directory).read { transaction in
            try transaction.rows("SELECT channel_id FROM channels") { $0.string() }
        }
    }

    @Test("I21 a request with a truncated body isn't carried out, however much has arrived and however its connection ends")
    func brokenBodies() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        let head = "POST /v1/channels HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n"
        var open: [RawConnection] = []
        for (framing, body, isEvidentAtOnce) in Self.brokenOff {
            for endsOutput in [true, false] {
                let connection = try await RawConnection.connect(port: server.port, isHalfClosable: true)
                try await connection.send(head + framing + "\r\n\r\n" + body)
                if endsOutput, !isEvidentAtOnce { await connection.endOutput() }
                if endsOutput || isEvidentAtOnce {
                    let answers = await HTTPTests.answers(on: connection, atLeast: 1, untilClosed: true)
                    #expect(answers.map(\.status) == [400])
                }
                if endsOutput { await connection.endOutput() } else { await connection.close() }
                open.append(connection)
            }
            // One more is half received when the server stops.
            let unfinished = try await RawConnection.connect(port: server.port)
            try await unfinished.send(head + framing + "\r\n\r\n" + body)
            open.append(unfinished)
        }
        // Anything taken for a request would be carried out before the server has stopped.
        try await server.stop()
        #expect(try Self.channels(of: server) == [])
        for connection in open { await connection.close() }
    }

    @Test("I21 a request whose body stalls is cut off in time, and isn't carried out")
    func stalledBodies() async throws {
        let server = try await TestServer { $0.requestTimeout = .seconds(1) }
        let token = try await server.token("ann")
        let head = "POST /v1/channels HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n"
        for (framing, body, isEvidentAtOnce) in Self.brokenOff where !isEvidentAtOnce {
            let connection = try await RawConnection.connect(port: server.port)
            connection.post(Array((head + framing + "\r\n\r\n" + body).utf8))
            #expect(await connection.isClosed())
        }
        try await server.stop()
        #expect(try Self.channels(of: server) == [])
    }

    @Test("I21 a client that ends its half of the connection after its request gets the whole answer, however slowly it reads")
    func halfClosed() async throws {
        let server = try await TestServer.shared()
        let connection = try await RawConnection.connect(port: server.port, isHalfClosable: true, isNarrow: true)
        try await connection.setReading(false)
        try await connection.send("GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n")
        await connection.endOutput()
        // Once its beginning has arrived, the answer has been written, and most of it is queued.
        connection.readOnce()
        var bytes = await connection.receive().map { Array($0.readableBytesView) } ?? []
        #expect(!bytes.isEmpty && bytes.count < 65_536)
        try await connection.setReading(true)
        while let more = await connection.receive() { bytes += Array(more.readableBytesView) }
        // A truncated answer doesn't count.
        #expect(HTTPTests.cut(bytes).map(\.status) == [200])
        await connection.close()
    }
}
