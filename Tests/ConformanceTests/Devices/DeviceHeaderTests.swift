import RoostAPI
import RoostTestSupport
import Testing

/// Devices of clients that send their token in the request for the socket.
@Suite struct DeviceHeaderTests {
    private static let upgrade = [
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]

    private static func field(of answer: TestServer.Answer) throws -> String? {
        guard case .string(let field) = try answer.decoded(JSONValue.self)["field"] else { return nil }
        return field
    }

    private static func welcomed(_ headers: [String], on server: TestServer) async throws -> RawSocket {
        let socket = try await RawSocket.open(port: server.port, headers: headers)
        guard case .text(let text) = await socket.next(), text.hasPrefix(#"{"welcome""#) else { throw Missed("a welcome") }
        return socket
    }

    @Test("a device named in the request's headers is listed, and signing it out closes its socket")
    func named() async throws {
        let server = try await TestServer()
        let token = "Authorization: Bearer \(try await server.token("ann"))"
        let phone = try await Self.welcomed(
            [token, "Roost-Device: my%20phone", "Roost-Device-Name: Ann%E2%80%99s%20phone", "roost-device-platform: iOS"],
            on: server)
        let bot = try await Self.welcomed([token, "Roost-Device: bot"], on: server)
        let nameless = try await Self.welcomed([token], on: server)
        let devices = try await phone.call(ListDevices())
        #expect(Set(devices.map(\.deviceId)) == ["my phone", "bot"])
        let listed = try #require(devices.first { $0.deviceId == "my phone" })
        #expect(listed.name == "Ann’s phone" && listed.platform == "iOS" && listed.isCurrent)
        #expect(try await nameless.call(ListDevices()).filter(\.isCurrent).isEmpty)
        try await bot.call(SignOutDevice(device: "my phone"))
        var incoming = await phone.next()
        while case .text = incoming { incoming = await phone.next() }
        guard case .close(let code, _) = incoming else { throw Missed("a close: \(incoming)") }
        #expect(code == CloseCode.tokenRevoked.rawValue)
        #expect(try await bot.call(ListDevices()).map(\.deviceId) == ["bot"])
        try await server.stop()
    }

    @Test("I21 an invalid device in headers is refused by its header's name, and no socket opens")
    func refused() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        func ask(_ headers: String..., token: String?) async throws -> [String?] {
            let answer = try await server.request("GET", "/v1/socket", token: token, headers: Self.upgrade + headers)
            return [String(answer.status), answer.code, try Self.field(of: answer)]
        }
        let (id, name, platform) = ("Roost-Device", "Roost-Device-Name", "Roost-Device-Platform")
        #expect(try await ask("\(name): Phone", token: token) == ["400", "invalid_argument", id])
        #expect(try await ask("\(id): phone", token: nil) == ["400", "invalid_argument", id])
        // These open an unauthenticated socket.
        for other in ["Authorization: Basic YTpi", "Authorization: Bearer"] {
            #expect(try await ask("\(id): phone", other, token: nil) == ["400", "invalid_argument", id])
        }
        #expect(try await ask("\(id): ", token: token) == ["400", "invalid_argument", id])
        #expect(try await ask("\(id): 50%", token: token) == ["400", "invalid_argument", id])
        #expect(try await ask("\(id): a", "\(id): b", token: token) == ["400", "invalid_argument", id])
        for (header, length) in [
            (id, Limits.deviceIDLength), (name, Limits.deviceNameLength), (platform, Limits.platformLength),
        ] {
            let others = header == id ? [] : ["\(id): phone"]
            let good = others + ["\(header): \(String(repeating: "a", count: length))"]
            await (try Self.welcomed(["Authorization: Bearer \(token)"] + good, on: server)).close()
            let bad = others + ["\(header): \(String(repeating: "a", count: length + 1))"]
            let answer = try await server.request("GET", "/v1/socket", token: token, headers: Self.upgrade + bad)
            #expect(try [answer.code, Self.field(of: answer)] == ["limit_exceeded", header])
        }
        // No other request accepts them.
        let answer = try await server.request("GET", "/v1/me", token: token, headers: ["\(id): phone"])
        #expect(try [String(answer.status), answer.code, Self.field(of: answer)] == ["400", "invalid_argument", id])
        try await server.stop()
    }
}
