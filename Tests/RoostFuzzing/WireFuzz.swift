import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport

/// Requests and sockets over loopback to a whole server in this process.
struct WireFuzz: Sendable {
    let server: TestServer
    let token: String
    /// The time of keys that the server accepts: the day, so a seed repeats a run.
    private let day = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 / 86_400) * 86_400_000)

    init() async throws {
        server = try await TestServer()
        token = try await server.token("ann", role: .admin)
        let body = #"{"channel":"general","type":"community"}"#
        _ = try await server.request("POST", "/v1/channels", token: token, body: body)
    }

    func check(_ random: inout FuzzRandom) async throws {
        let bytes = input(&random)
        let connection = try await connection()
        let cut = random.below(bytes.count + 1)
        connection.post(bytes[..<cut])
        if random.chance(2) { await Task.yield() }
        connection.post(bytes[cut...])
        let text = await connection.receiveAll(within: .milliseconds(50))
        await connection.close()
        let isFailure = text.contains("internal_error") || text.contains("HTTP/1.1 500")
        if isFailure { throw FuzzFinding("the server answers with internal_error", bytes) }
    }

    /// A busy machine may take longer than a connection waits.
    private func connection() async throws -> RawConnection {
        for _ in 0..<5 {
            if let connection = try? await RawConnection.connect(port: server.port) { return connection }
        }
        throw FuzzFinding("the server no longer accepts connections", [])
    }

    /// Whether the server still answers.
    func checkAlive() async throws {
        guard try await server.request("GET", "/livez").status == 200 else {
            throw FuzzFinding("the server no longer answers", [])
        }
    }

    private func input(_ random: inout FuzzRandom) -> [UInt8] {
        if random.chance(3) { return ConnectionFuzz.input(&random) }
        let entry = random.pick(OperationTable.handled)
        var path = entry.path.split(separator: "/").map { part in
            part.hasPrefix("{")
                ? random.pick(["general", "ann", "1", "%", "%zz", "%2F", "%00", "%C3%A9", "x%20y", "-1", ".."]) : String(part)
        }.joined(separator: "/")
        let usesQuery = entry.method == .get || entry.method == .delete
        if usesQuery, random.chance(2), let schema = OperationTable.named(entry.name)?.schema {
            let pairs = schema.fields.filter { _ in random.chance(3) }.map { field in
                "\(field.name)=\(random.pick(["", "1", "0", "-1", "9223372036854775807", "9223372036854775808", "true", "x,y", "%zz", "%ff", "%00", "ann"]))"
            }
            path += "?" + pairs.joined(separator: "&")
        }
        let body = usesQuery ? "" : JSONFuzz.value(&random)
        let key = random.chance(3) ? "Idempotency-Key: \(key(&random))\r\n" : ""
        let head =
            "\(entry.method.rawValue) /\(path) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\(key)Connection: close\r\n"
        let request = Array((head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body).utf8)
        return random.chance(2) ? request : Mutation.of(request, words: ConnectionFuzz.words + JSONFuzz.words, &random)
    }

    private func key(_ random: inout FuzzRandom) -> String {
        if random.chance(6) { return random.pick(["", "\"\"", "1", "\"", "order 7", "é", "\u{0}"]) }
        let time = random.chance(3) ? Timestamp(milliseconds: random.pick(MessageFuzz.numbers)) : day
        let text = IdempotencyKey(madeAt: time, random: UInt64(random.below(3))).rawValue
        return random.chance(2) ? text : "\"\(text.uppercased())\""
    }
}
