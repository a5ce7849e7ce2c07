import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Devices with the real server: on bare sockets, and with the SDK.
@MainActor @Suite struct DeviceTests {
    /// Returns what a socket receives until it is closed: the messages, and the code.
    private static func end(of socket: RawSocket) async throws -> (messages: [String], code: UInt16) {
        var messages: [String] = []
        while true {
            switch await socket.next() {
            case .text(let text): messages.append(text)
            case .close(let code, _): return (messages, code)
            case .ping: continue
            case .end: throw Missed("a close, after \(messages)")
            }
        }
    }

    private static func socket(_ device: DeviceDescription, _ token: String, on server: TestServer) async throws -> RawSocket {
        let socket = try await RawSocket.open(port: server.port)
        try await socket.send(json: AuthenticateFrame(token: token, device: device))
        guard case .text(let text) = await socket.next(), text.hasPrefix(#"{"welcome""#) else { throw Missed("a welcome") }
        return socket
    }

    private static let signedOut = #"{"error":{"code":"token_revoked","message":"This device was signed out. Get another token."}}"#

    @Test("signing a device out closes its sockets while they send, revokes its token, and nothing more from either arrives")
    func signOut() async throws {
        let server = try await TestServer()
        let forge = try TokenForge(secret: try SecretFile(directory: server.directory).read())
        func token(_ id: String) -> String { forge.own(#"{"alg":"HS256"}"#, forge.claims(#""jti":"\#(id)""#)) }
        let admin = try await server.socket("root", role: .admin)
        let laptop = try await Self.socket(DeviceDescription(deviceId: "laptop"), token("t1"), on: server)
        let user = try await laptop.call(GetMe()).userId
        try await admin.call(CreateChannel(channel: "general", type: .community, users: [user]))
        let phone = DeviceDescription(deviceId: "phone", name: "Phone", platform: "iOS")
        let sockets = [
            try await Self.socket(phone, token("t2"), on: server), try await Self.socket(phone, token("t3"), on: server),
        ]
        #expect(try await laptop.call(ListDevices()).map(\.deviceId) == ["phone", "laptop"])
        #expect(try await sockets[0].call(ListDevices()).map(\.isCurrent) == [true, false])

        // The device's calls are sent before, during and after the sign-out: each is answered, or was never made.
        for (index, socket) in sockets.enumerated() {
            for number in 0..<20 {
                _ = try await socket.post(
                    SendMessage(channel: "general", clientId: ClientID("\(index)-\(number)"), text: "hi"))
            }
        }
        let answer = try await laptop.call(SignOutDevice(device: "phone"))
        #expect(answer == SignedOutDevice(deviceId: "phone", isTokenRevoked: true))
        let newest = try await admin.call(ListMessages(channel: "general", limit: 1)).messages.last?.seq ?? 0
        try await admin.call(SendMessage(channel: "general", clientId: "after", text: "after"))
        for socket in sockets {
            let (messages, code) = try await Self.end(of: socket)
            #expect(code == CloseCode.tokenRevoked.rawValue && messages.last == Self.signedOut)
            #expect(!messages.contains { $0.contains(#""text":"after""#) })
        }
        let all = try await admin.call(ListMessages(channel: "general", limit: 100)).messages
        #expect(all.filter { $0.seq > newest }.map(\.text) == ["after"])
        let refusal = try await server.request("GET", "/v1/me", token: token("t3"))
        #expect([String(refusal.status), refusal.code] == ["401", "token_revoked"])
        let again = try await RawSocket.open(port: server.port)
        try await again.send(json: AuthenticateFrame(token: token("t3"), device: phone))
        #expect(try await Self.end(of: again).code == CloseCode.tokenRevoked.rawValue)
        #expect(try await laptop.call(ListDevices()).map(\.deviceId) == ["laptop"])

        // With another token it reconnects, and a user can sign out their own device.
        let back = try await Self.socket(phone, token("t4"), on: server)
        #expect(try await back.call(ListDevices()).map(\.deviceId) == ["phone", "laptop"])
        #expect(try await back.call(SignOutDevice(device: "phone")).isTokenRevoked)
        #expect(try await Self.end(of: back).messages == [Self.signedOut])
        for socket in [admin, laptop] { await socket.close() }
        try await server.stop()
    }

    @Test("a bad device is refused with its field, and the socket closed; over HTTP there is none")
    func refused() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        let long = String(repeating: "x", count: 65)
        for (device, field) in [
            (DeviceDescription(deviceId: ""), "device.deviceId"), (DeviceDescription(deviceId: DeviceID(long)), "device.deviceId"),
            (DeviceDescription(deviceId: "a", name: long + long), "device.name"),
            (DeviceDescription(deviceId: "a", platform: long), "device.platform"),
        ] {
            let socket = try await RawSocket.open(port: server.port)
            try await socket.send(json: AuthenticateFrame(token: token, device: device))
            let (messages, code) = try await Self.end(of: socket)
            #expect(code == CloseCode.unauthenticated.rawValue)
            #expect(messages.count == 1 && messages.allSatisfy { $0.contains(#""field":"\#(field)""#) }, "\(messages)")
        }
        // Unreadable and unknown members are named as well, never with their values.
        for (members, field) in [
            (#""token":7"#, "token"), (#""client":"x""#, "token"), (#""token":"T","client":5"#, "client"),
            (#""token":"T","devcie":{"deviceId":"d"}"#, "devcie"), (#""token":"T","device":"phone""#, "device"),
            (#""token":"T","device":{"name":"x"}"#, "device.deviceId"),
            (#""token":"T","device":{"deviceId":7}"#, "device.deviceId"),
            (#""token":"T","device":{"deviceId":"d","model":"x"}"#, "device.model"),
        ] {
            for (start, end, named) in [("", "", field), (#""call":1,"#, "", "call"), ("", #","call":1"#, "call")] {
                let socket = try await RawSocket.open(port: server.port)
                try await socket.send(
                    text: "{\(start)\"authenticate\":{\(members.replacing("\"T\"", with: "\"\(token)\""))}\(end)}")
                let (messages, code) = try await Self.end(of: socket)
                #expect(code == CloseCode.unauthenticated.rawValue)
                #expect(messages.count == 1 && messages.allSatisfy { $0.contains(#""field":"\#(named)""#) }, "\(messages)")
                #expect(!messages.contains { $0.contains(token) })
            }
        }
        let listed = try await server.request("GET", "/v1/me/devices", token: token)
        #expect(listed.status == 200)
        #expect(try listed.decoded([Device].self) == [])
        let unknown = try await server.request("POST", "/v1/me/devices/phone/sign-out", token: token)
        #expect([String(unknown.status), unknown.code] == ["404", "not_found"])
        // It holds up others, so it has a rate limit.
        let bob = try await server.socket("bob")
        for _ in 0..<30 { _ = try await bob.post(SignOutDevice(device: "phone")) }
        var refusals: [String: Int] = [:]
        // Those that are refused at once come first.
        for _ in 0..<30 {
            guard let text = await bob.nextText() else { throw Missed("a reply") }
            for code in ["not_found", "rate_limited"] where text.contains(#""code":"\#(code)""#) { refusals[code, default: 0] += 1 }
        }
        #expect(refusals.values.reduce(0, +) == 30 && refusals.count == 2, "\(refusals)")
        #expect(refusals["not_found", default: 0] >= Limits.signOutsPerMinute, "\(refusals)")
        // Both transports share a count, and each user has their own.
        let more = try await server.request("POST", "/v1/me/devices/phone/sign-out", token: try await server.token("bob"))
        #expect([String(more.status), more.code] == ["429", "rate_limited"])
        let other = try await server.request("POST", "/v1/me/devices/phone/sign-out", token: token)
        #expect([String(other.status), other.code] == ["404", "not_found"])
        try await server.stop()
    }

    @Test("a client whose device name has more accents on a letter than allowed connects with fewer")
    func markedName() async throws {
        let server = try await TestServer()
        let marks = String(repeating: "\u{301}", count: 200)
        var configuration = Chat.Configuration.tested(.inMemory)
        // Marks without a letter before them count too.
        configuration.device = DeviceInfo(name: "a\(marks)b", platform: marks)
        let chat = Chat(url: server.url, user: "ann", configuration: configuration) { try await server.token("ann") }
        try await chat.connect()
        let device = try #require(try await chat.devices().first)
        let kept = String(repeating: "\u{301}", count: Limits.combiningMarks)
        #expect([device.name, device.platform] == ["a\(kept)b", kept])
        await chat.disconnect()
        try await server.stop()
    }

    @Test("a client names its device, keeps its id with its files, and signs others out")
    func sdk() async throws {
        let server = try await TestServer()
        let folder = TemporaryDirectory.make()
        func client(_ device: DeviceInfo?, in directory: URL? = nil) -> Chat {
            var configuration = Chat.Configuration.tested(directory.map(Chat.Storage.directory) ?? .inMemory)
            configuration.device = device
            return Chat(url: server.url, user: "ann", configuration: configuration) { try await server.token("ann") }
        }
        let laptop = client(DeviceInfo(name: "Laptop", platform: "Linux"), in: folder)
        try await laptop.connect()
        let own = try #require(try await laptop.devices().first)
        #expect(own.name == "Laptop" && own.platform == "Linux" && own.isCurrent)
        await laptop.disconnect()
        let reopened = client(DeviceInfo(name: String(repeating: "\u{E9}", count: 200), platform: "Linux"), in: folder)
        try await reopened.connect()
        let renamed = try await reopened.devices()
        #expect(renamed.map(\.deviceId) == [own.deviceId] && renamed.map { $0.name?.count } == [128])

        let (phone, unnamed) = (client(.current), client(nil))
        try await phone.connect()
        try await unnamed.connect()
        let listed = try await reopened.devices()
        #expect(listed.count == 2 && listed.first?.isCurrent == false && listed.first?.platform == "Linux")
        #expect(try await unnamed.devices().map(\.isCurrent) == [false, false])
        // Its token has no jti: it is disconnected, and reconnects with another token from its app.
        var statuses: [ConnectionStatus] = []
        let observed = phone.connection.observe { statuses.append($0) }
        let id = try #require(listed.first?.deviceId)
        #expect(try await reopened.signOut(device: id) == SignedOutDevice(deviceId: id, isTokenRevoked: false))
        try await wait("the phone to come back") { statuses.count > 1 && statuses.last == .online }
        let back = try await reopened.devices()
        #expect(back.first?.deviceId == id && back.first.map { $0.createdAt > listed[0].createdAt } == true)
        await #expect(throws: RoostError.self) { try await reopened.signOut(device: "unknown") }
        observed.invalidate()
        for client in [reopened, phone, unnamed] { await client.disconnect() }
        try await server.stop()
    }

    @Test("a user who logs out is no longer listed with the device if they want that and it is online, and logs out in any case")
    func logOut() async throws {
        let server = try await TestServer()
        let (laptop, phone, tablet) = (chat("ann", at: server), chat("ann", at: server), chat("ann", at: server))
        for client in [laptop, phone, tablet] { try await client.connect() }
        let ids = [try await laptop.deviceId, try await phone.deviceId, try await tablet.deviceId]
        #expect(Set(try await laptop.devices().map(\.deviceId)) == Set(ids))
        let current = try await phone.devices().filter(\.isCurrent)
        #expect(current.map(\.deviceId) == [ids[1]])

        try await phone.logOut(signingOutDevice: true)
        #expect(Set(try await laptop.devices().map(\.deviceId)) == [ids[0], ids[2]])
        await tablet.disconnect()
        try await tablet.logOut(signingOutDevice: true)
        try await laptop.logOut()
        let back = chat("ann", at: server)
        try await back.connect()
        let own = try await back.deviceId
        #expect(Set(try await back.devices().map(\.deviceId)) == [ids[0], ids[2], own])
        await back.disconnect()
        try await server.stop()
    }
}
