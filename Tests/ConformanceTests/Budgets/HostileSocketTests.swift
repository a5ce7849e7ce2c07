import Dispatch
import Foundation
import NIOCore
import RoostAPI
import RoostDatabase
import RoostServer
import RoostTestSupport
import Synchronization
import Testing

/// Sockets that request as much as they can and read nothing: the server's memory for them is bounded, and others are served.
///
/// The bounds leave room for the overhead of debug builds.
@Suite(.serialized) struct HostileSocketTests {
    /// 640 calls in 52 KB, each for a page of 1 MiB as it is written.
    private static let calls: [UInt8] = (1...640).flatMap { number in
        RawSocket.frame(
            opcode: 1, Array(#"{"call":\#(number),"operation":"message.list","with":{"channel":"c","limit":100}}"#.utf8))
    }

    /// A process's peak memory, in MiB.
    private static func peakMebibytes(of process: Int32) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        guard let match = status.firstMatch(of: /VmHWM:\s+(\d+) kB/), let size = Int(match.1) else { throw Missed("VmHWM") }
        return size / 1024
    }

    /// A channel with pages of texts that grow sixfold when they are written.
    private static func fill(_ server: WatchedServer) async throws -> RawSocket {
        let owner = try await server.socket("owner")
        _ = try await owner.call(CreateChannel(channel: "c"))
        let text = "a" + String(repeating: "\u{1}", count: 8999)
        for number in 0..<60 { try await owner.call(SendMessage(channel: "c", clientId: ClientID("\(number)"), text: text)) }
        let page = try await owner.call(ListMessages(channel: "c"))
        #expect(page.messages.count > 10 && page.messages.count < 25)
        return owner
    }

    @Test("I18 a socket that requests 640 pages and reads none makes the server hold little", arguments: [1, 60])
    func unreadPages(_ count: Int) async throws {
        let server = try await WatchedServer.start(arguments: ["--memory-budget", "16"])
        let owner = try await Self.fill(server)
        var hostile: [RawSocket] = []
        for number in 0..<count {
            let user = UserID("mallory\(number)")
            let socket = try await server.socket(user)
            try await socket.call(JoinChannel(channel: "c"))
            try await socket.connection.setReading(false)
            hostile.append(socket)
        }
        let before = try Self.peakMebibytes(of: server.process.identifier)
        for socket in hostile { socket.connection.post(Self.calls) }
        // Others are served meanwhile: refused for a moment at most, and then as usual.
        for number in 0..<20 {
            try await Polling.value {
                try? await owner.call(GetMe()).userId
            } until: {
                $0 == "owner"
            }
            try await owner.call(SendMessage(channel: "c", clientId: ClientID("later\(number)"), text: "on"))
        }
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? 0
        } until: {
            $0 < 16_000_000
        }
        let grown = try Self.peakMebibytes(of: server.process.identifier) - before
        #expect(grown < (count == 1 ? 24 : 80), "\(grown) MiB")
        for socket in hostile { await socket.close() }
        await owner.close()
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? -1
        } until: {
            $0 == 0
        }
        try await server.stop()
    }

    @Test(
        "I18 a user whose sockets request small pages first and then hundreds of large ones takes nothing that others need"
    )
    func smallPagesFirst() async throws {
        let server = try await WatchedServer.start(arguments: ["--memory-budget", "16"])
        let owner = try await Self.fill(server)
        var hostile: [RawSocket] = []
        for _ in 0..<20 {
            let socket = try await server.socket("mallory")
            try await socket.call(JoinChannel(channel: "c"))
            // From here on several pages may be in progress on the socket.
            for _ in 0..<3 { _ = try await socket.call(ListMessages(channel: "c", limit: 1)) }
            try await socket.connection.setReading(false)
            hostile.append(socket)
        }
        for socket in hostile { socket.connection.post(Self.calls) }
        for _ in 0..<100 {
            let page = try await owner.call(ListMessages(channel: "c", limit: 1))
            #expect(page.messages.count == 1)
            let held = try await server.metrics().value("roost_held_bytes") ?? .infinity
            #expect(held < 12_000_000)
        }
        #expect(try await server.metrics().value("roost_overloaded_total", ["budget": "user"]) ?? 0 > 0)
        for socket in hostile { await socket.close() }
        await owner.close()
        try await server.stop()
    }

    @Test("I18 answers over HTTP that a client leaves unread count until it reads them or disconnects, and end at the limit")
    func unreadAnswers() async throws {
        let server = try await WatchedServer.start(arguments: ["--memory-budget", "8"])
        let owner = try await Self.fill(server)
        let token = try await server.token("mallory", role: .user)
        let mallory = try await server.socket("mallory")
        try await mallory.call(JoinChannel(channel: "c"))
        await mallory.close()
        func held() async throws -> Double { try await server.metrics().value("roost_held_bytes") ?? -1 }
        func askForPages() async throws -> RawConnection {
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.setReading(false)
            // The kernels of both sides buffer the first few.
            for _ in 0..<12 {
                connection.post(
                    Array(
                        "GET /v1/channels/c/messages?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n".utf8))
            }
            return connection
        }

        let first = try await askForPages()
        try await Polling.value {
            try await held()
        } until: {
            $0 > 400_000
        }
        // It reads its answers, and nothing is held any longer.
        try await first.setReading(true)
        try await Polling.value {
            try await held()
        } until: {
            $0 == 0
        }
        await first.close()

        let gone = try await askForPages()
        try await Polling.value {
            try await held()
        } until: {
            $0 > 400_000
        }
        await gone.close()
        try await Polling.value {
            try await held()
        } until: {
            $0 == 0
        }

        // One user has a quarter of 8 MiB, and others continue whatever that user leaves unread.
        var many: [RawConnection] = []
        for _ in 0..<12 { many.append(try await askForPages()) }
        try await Polling.value {
            try await held()
        } until: {
            $0 > 1_500_000
        }
        #expect(try await held() < 6_000_000)
        let page = try await owner.call(ListMessages(channel: "c"))
        #expect(page.messages.count > 10)
        for connection in many { await connection.close() }
        try await Polling.value {
            try await held()
        } until: {
            $0 == 0
        }
        await owner.close()
        try await server.stop()
    }

    @Test(
        "I18 messages that edits over HTTP return unchanged and unread use up their user's budget, even if all requests began before, and no other's",
        arguments: [false, true])
    func unreadEdits(_ hasLateBodies: Bool) async throws {
        let server = try await WatchedServer.start(arguments: ["--memory-budget", "8"])
        func held() async throws -> Double { try await server.metrics().value("roost_held_bytes") ?? -1 }
        let (mallory, ben) = (try await server.socket("mallory"), try await server.socket("ben"))
        for (socket, channel) in [(mallory, "m"), (ben, "b")] as [(RawSocket, ChannelID)] {
            try await socket.call(CreateChannel(channel: channel))
        }
        // Written as JSON, each of these characters has six bytes.
        let text = String(repeating: "\u{1}", count: 19_999)
        let message = try await mallory.call(
            SendMessage(
                channel: "m", clientId: "1", text: "a" + text, customType: "x", data: text,
                metadata: .object(["a": .string(String(repeating: "b", count: 90_000))])))
        await mallory.close()
        // Otherwise the last answer to that socket could pass for the requests below.
        try await Polling.value {
            try await held()
        } until: {
            $0 == 0
        }
        let (token, body) = (try await server.token("mallory"), #"{"customType":"x"}"#)
        let head = """
            PATCH /v1/channels/m/messages/\(message.messageId) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\
            Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n
            """
        let (first, rest) = hasLateBodies ? (head, body) : (head + body, "")
        var connections: [RawConnection] = []
        for _ in 0..<40 {
            let connection = try await RawConnection.connect(port: server.port, isNarrow: true)
            try await connection.setReading(false)
            connections.append(connection)
        }
        for connection in connections { connection.post(Array(first.utf8)) }
        if hasLateBodies {
            // All of them have begun by now, while there was room for each.
            try await Polling.value {
                try await held()
            } until: {
                $0 >= Double(connections.count * body.utf8.count)
            }
        }
        for (number, connection) in connections.enumerated() {
            if !rest.isEmpty { connection.post(Array(rest.utf8)) }
            try await ben.call(SendMessage(channel: "b", clientId: ClientID("\(number)"), text: "on"))
            let page = try await ben.call(ListMessages(channel: "b", limit: 100))
            #expect(page.messages.count > number)
            #expect(try await held() < 6_000_000)
        }
        // A quarter of 8 MiB was used up, and the rest of the edits refused.
        try await Polling.value {
            try await server.metrics().value("roost_overloaded_total", ["budget": "user"]) ?? 0
        } until: {
            $0 > 0
        }
        for connection in connections { await connection.close() }
        try await Polling.value {
            try await held()
        } until: {
            $0 == 0
        }
        await ben.close()
        try await server.stop()
    }

    @Test("I18 an answer of a few KiB over HTTP counts too while it waits behind unread answers that don't count")
    func waitingAnswer() async throws {
        let server = try await WatchedServer.start()
        func held() async throws -> Double { try await server.metrics().value("roost_held_bytes") ?? -1 }
        let mallory = try await server.socket("mallory")
        try await mallory.call(CreateChannel(channel: "m"))
        let message = try await mallory.call(
            SendMessage(channel: "m", clientId: "1", text: String(repeating: "a", count: 15_000)))
        await mallory.close()
        try await Polling.value {
            try await held()
        } until: {
            $0 == 0
        }
        let token = try await server.token("mallory")
        let description = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
        let request =
            "GET /v1/channels/m/messages/\(message.messageId) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n"
        // With one of these numbers the last description is the first that the kernel doesn't take, and the message waits behind it.
        var connections: [RawConnection] = []
        for count in 1...3 {
            let connection = try await RawConnection.connect(port: server.port, isNarrow: true)
            try await connection.setReading(false)
            connection.post(Array((String(repeating: description, count: count) + request).utf8))
            connections.append(connection)
        }
        try await Polling.value {
            try await held()
        } until: {
            $0 >= 15_000
        }
        for connection in connections { await connection.close() }
        try await Polling.value {
            try await held()
        } until: {
            $0 == 0
        }
        try await server.stop()
    }

    /// A clock that stops the next thread that asks for the time, so a test can act while that thread works.
    private final class StoppingClock: Sendable {
        private let isArmed = Atomic<Bool>(false)
        private let isFree = DispatchSemaphore(value: 0)
        let stopped = Mailbox<Bool>()

        func arm() { isArmed.store(true, ordering: .sequentiallyConsistent) }
        func release() { isFree.signal() }

        func read() -> Timestamp {
            if isArmed.exchange(false, ordering: .sequentiallyConsistent) {
                stopped.put(true)
                // A failed test never releases it.
                _ = isFree.wait(timeout: .now() + 60)
            }
            return .now
        }
    }

    @Test("I18 a page over HTTP that is dropped because its user's budget is used up by then is counted as refused")
    func droppedPage() async throws {
        ProcessCounts.begin()
        let clock = StoppingClock()
        let server = try await TestServer {
            $0.memoryBudgetBytes = 8 << 20
            $0.clock = { clock.read() }
            // Otherwise the thread that runs effects asks for the time too.
            $0.effects.pollInterval = .seconds(600)
        }
        let token = try await server.token("mallory")
        let message = #"{"clientId":"1","text":"\#(String(repeating: "a", count: 15_000))"}"#
        for (path, body) in [("/v1/channels", #"{"channel":"c"}"#), ("/v1/channels/c/messages", message)] {
            #expect(try await server.request("POST", path, token: token, body: body).status == 200)
        }
        let labels = ["operation": ListMessages.name, "code": "overloaded"]
        let before = try ProcessCounts.page().value("roost_refusals_total", labels) ?? 0

        clock.arm()
        async let dropped = server.request("GET", "/v1/channels/c/messages", token: token)
        guard await clock.stopped.next() == true else { throw Missed("the read") }
        defer { clock.release() }
        // The read was let in, since there was room. Bodies that never arrive use up the budget until it is done.
        var bodies: [RawConnection] = []
        for _ in 0..<2 {
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.send(
                "POST /v1/users/changed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                    + "Content-Type: application/json\r\nContent-Length: \(Limits.bodySizeBytes)\r\n\r\n")
            bodies.append(connection)
        }
        func held() async throws -> Double {
            try MetricsText(try await server.request("GET", "/metrics").body).value("roost_held_bytes") ?? -1
        }
        try await eventually("the budget is used up") { try await held() >= Double(2 * Limits.bodySizeBytes) }
        clock.release()
        let refused = try await dropped
        #expect([String(refused.status), refused.code] == ["503", "overloaded"])
        #expect(refused.body.contains("The user's share of the server's memory for clients is used up"))
        #expect(try ProcessCounts.page().value("roost_refusals_total", labels) ?? 0 > before)
        for connection in bodies { await connection.close() }
        try await eventually("nothing is held") { try await held() == 0 }
        try await server.stop()
    }

    @Test(
        "I18 a request whose body arrives in chunks counts with what has arrived, and isn't refused because of what it holds itself"
    )
    func chunks() async throws {
        let server = try await WatchedServer.start(arguments: ["--memory-budget", "8"])
        let token = try await server.token("ann")
        let (first, rest) = ("{", #""versions":{}}"#)
        func chunk(_ text: String) -> String { "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n" }
        // Before its end each counts as the largest body there is, and two of these are all that the user may hold.
        var connections: [RawConnection] = []
        for _ in 0..<2 {
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.send(
                "POST /v1/users/changed HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer \(token)\r\n"
                    + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(first))
            connections.append(connection)
        }
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? -1
        } until: {
            $0 >= Double(2 * Limits.bodySizeBytes)
        }
        for connection in connections {
            try await connection.send(chunk(rest) + chunk(""))
            #expect(try TestServer.parse(await connection.receiveAll()).status == 200)
            await connection.close()
        }
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? -1
        } until: {
            $0 == 0
        }
        try await server.stop()
    }

    @Test("I21 I18 calls of 32 MiB, sent with the request for the socket, are each answered once, and few are held at a time")
    func behindTheUpgrade() async throws {
        let server = try await WatchedServer.start(arguments: ["--memory-budget", "16"])
        let token = try await server.token("mallory")
        let upgrade = UpgradeTests.upgrade.replacing("\r\n\r\n", with: "\r\nAuthorization: Bearer \(token)\r\n\r\n")
        let spaces = [UInt8](repeating: 32, count: 65_500)
        func calls(_ numbers: Range<Int>) -> [UInt8] {
            numbers.flatMap { RawSocket.frame(opcode: 1, Array(#"{"call":\#($0),"operation":"user.me"}"#.utf8) + spaces) }
        }
        let before = try Self.peakMebibytes(of: server.process.identifier)
        let connection = try await RawConnection.connect(port: server.port)
        connection.post(Array(upgrade.utf8) + calls(0..<16))
        for part in 1..<32 { connection.post(calls(part * 16..<(part + 1) * 16)) }

        /// The number of the call that a frame answers, if it was carried out.
        func answered(_ frame: ServerFrame) -> Int? {
            guard case .text(let text) = frame else { return nil }
            return String(decoding: text, as: UTF8.self).firstMatch(of: /^{"reply":([0-9]+),"result"/).flatMap { Int($0.output.1) }
        }
        // Calls that only read run concurrently, and are answered in any order.
        var replyCount = 0
        let frames = try await UpgradeTests.frames(on: connection) { frame in
            if answered(frame) != nil { replyCount += 1 }
            return replyCount == 16 * 32
        }
        #expect(frames.compactMap(answered).sorted() == Array(0..<16 * 32))
        // The welcome preceded them.
        #expect(frames.first.map(answered) == .some(nil))
        try await connection.send(RawSocket.frame(opcode: 1, Array(#"{"call":9000,"operation":"user.me"}"#.utf8)))
        guard let rest = await connection.receive() else { throw Missed("a reply") }
        #expect(ServerFrame.all(in: rest).first.map(answered) == 9000)
        let grown = try Self.peakMebibytes(of: server.process.identifier) - before
        #expect(grown < 24, "\(grown) MiB")
        await connection.close()
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? -1
        } until: {
            $0 == 0
        }
        try await server.stop()
    }

    @Test("I18 calls whose sockets are closed count until they are done")
    func callsWithoutSockets() async throws {
        let server = try await TestServer { $0.memoryBudgetBytes = 512 << 20 }
        func metric(_ name: String, _ labels: [String: String] = [:]) async throws -> Double {
            try MetricsText(try await server.request("GET", "/metrics").body).value(name, labels) ?? -1
        }
        var sockets: [RawSocket] = []
        for _ in 0..<50 { sockets.append(try await server.socket("mallory")) }
        try await sockets[0].call(CreateChannel(channel: "c"))
        let (isHeld, isFree) = (Mailbox<Bool>(), DispatchSemaphore(value: 0))
        async let writer: Void = server.perform { _ in
            isHeld.put(true)
            // A failed test never releases it.
            _ = isFree.wait(timeout: .now() + 60)
        }
        guard await isHeld.next() == true else { throw Missed("the writer") }
        defer { isFree.signal() }
        let spaces = [UInt8](repeating: 32, count: 1_000_000)
        for (number, socket) in sockets.enumerated() {
            let call = #"{"call":9000,"operation":"message.send","with":{"channel":"c","clientId":"\#(number)","text":"x"}}"#
            try await socket.connection.send(RawSocket.frame(opcode: 1, Array(call.utf8) + spaces))
        }
        try await eventually("all calls wait for the writer") {
            try await metric("roost_queue_length", ["queue": "write"]) == 50
        }
        let all = try await metric("roost_held_bytes")
        #expect((50_000_000..<52_000_000).contains(all))
        for socket in sockets { await socket.close() }
        try await eventually("all sockets are gone") { try await metric("roost_sockets") == 0 }
        let left = try await metric("roost_held_bytes")
        #expect((50_000_000..<52_000_000).contains(left))
        isFree.signal()
        try await writer
        try await eventually("nothing is held") { try await metric("roost_held_bytes") == 0 }
        try await server.stop()
    }

    @Test("I18 fragments of unauthenticated sockets are limited to 16 KiB each")
    func fragments() async throws {
        let server = try await WatchedServer.start()
        var sockets: [RawSocket] = []
        let before = try Self.peakMebibytes(of: server.process.identifier)
        let first = RawSocket.frame(opcode: 1, [UInt8](repeating: 32, count: 16_000), isFinal: false)
        let next = RawSocket.frame(opcode: 0, [UInt8](repeating: 32, count: 60_000), isFinal: false)
        for _ in 0..<100 {
            let socket = try await RawSocket.open(port: server.port)
            socket.connection.post(first)
            for _ in 0..<15 { socket.connection.post(next) }
            sockets.append(socket)
        }
        for socket in sockets {
            guard case .close(1009, _) = await socket.next() else { throw Missed("a close") }
        }
        #expect(try Self.peakMebibytes(of: server.process.identifier) - before < 24)
        try await server.stop()
    }
}
