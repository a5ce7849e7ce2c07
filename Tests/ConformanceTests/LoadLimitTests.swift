import Foundation
import NIOCore
import RoostAPI
import RoostTestSupport
import Testing

/// Protection of the server from clients that send much or read little.
@Suite struct LoadLimitTests {
    @Test("I18 10,000 pipelined calls are all carried out once, in order")
    func pipelined() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general"))
        var bytes: [UInt8] = []
        for number in 1...10_000 {
            let call = CallFrame(
                call: Int64(number + 10), with: SendMessage(channel: "general", clientId: ClientID("c\(number)"), text: "\(number)")
            )
            bytes += RawSocket.frame(opcode: 1, try JSONWriter.bytes(of: call))
        }
        socket.connection.post(bytes)
        var replies = 0
        var texts: [String] = []
        while replies < 10_000, let text = await socket.nextText() {
            if text.hasPrefix(#"{"reply""#) {
                replies += 1
            } else if let event = try? JSONDecoder().decode(EventFrame.self, from: Data(text.utf8)).event {
                texts += event.rows.messages?.map(\.text) ?? []
            }
        }
        #expect(texts == (1...10_000).map(String.init))
        #expect(replies == 10_000)
        try await server.stop()
    }

    @Test("I18 a client that never reads is closed, and the others continue")
    func neverReads() async throws {
        let server = try await TestServer()
        let sender = try await server.socket("ann")
        try await sender.call(CreateChannel(channel: "general"))
        let deaf = try await server.socket("bob")
        try await deaf.call(JoinChannel(channel: "general"))
        try await deaf.connection.setReading(false)

        // Loopback buffers take several megabytes before the server notices.
        let text = String(repeating: "x", count: Limits.messageTextLength)
        var sent = 0
        while sent < 2000 {
            for _ in 0..<50 {
                sent += 1
                _ = try await sender.post(SendMessage(channel: "general", clientId: ClientID("c\(sent)"), text: text))
            }
            var replies = 0
            while replies < 50, let frame = await sender.nextText() { if frame.hasPrefix(#"{"reply""#) { replies += 1 } }
            let watched = try await sender.call(WatchChannel(channel: "general", limit: 1))
            if watched.online == 1 { break }
        }
        #expect(sent < 2000)
        try await server.stop()
    }

    @Test("I21 I18 a slow or oversized request ends and holds neither a thread nor memory")
    func headers() async throws {
        let server = try await TestServer()
        let many = (0..<200).map { "X-\($0): y" }
        let answer = try await server.request("GET", "/livez", headers: many)
        #expect(["\(answer.status)", answer.code ?? ""] == ["400", "invalid_argument"])
        let large = try await server.request("GET", "/livez", headers: ["X: " + String(repeating: "y", count: 20_000)])
        #expect(large.status == 400)
        let token = try await server.token("ann")
        let body = try await server.request(
            "POST", "/v1/channels", token: token, body: String(repeating: " ", count: Limits.bodySizeBytes + 1))
        #expect([String(body.status), body.code] == ["413", "limit_exceeded"])
        try await server.stop()
    }

    @Test(
        "I21 a body of 1,048,576 bytes is accepted and one a byte longer refused, by its length or in chunks",
        arguments: [false, true])
    func bodies(inChunks: Bool) async throws {
        let server = try await TestServer.shared()
        let token = try await server.token("ann")
        func answer(_ size: Int) async throws -> TestServer.Answer {
            let fields = #"{"type":"group"}"#
            let body = fields + String(repeating: " ", count: size - fields.utf8.count)
            guard inChunks else { return try await server.request("POST", "/v1/channels", token: token, body: body) }
            let head = ["POST /v1/channels HTTP/1.1", "Host: a", "Connection: close", "Authorization: Bearer \(token)"]
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.send((head + ["Transfer-Encoding: chunked"]).joined(separator: "\r\n") + "\r\n\r\n")
            try await connection.send(String(size, radix: 16) + "\r\n" + body + "\r\n0\r\n\r\n")
            let text = await connection.receiveAll()
            await connection.close()
            return try TestServer.parse(text)
        }
        #expect(try await answer(Limits.bodySizeBytes).status == 200)
        let over = try await answer(Limits.bodySizeBytes + 1)
        #expect([String(over.status), over.code] == ["413", "limit_exceeded"])
    }
}
