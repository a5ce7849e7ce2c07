import Foundation
import NIOCore
import NIOPosix
import RoostAPI
import RoostServer

/// Checks whether the server of a directory answers at an address.
struct ServerCheck {
    let address: String
    let directory: URL
    /// Whether the database is a file in the directory, opened by one server.
    let isDatabaseHere: Bool

    /// The address for requests to the server.
    private struct Place {
        let host: String
        let port: Int
        /// The prefix that a proxy adds to its paths.
        let prefix: String
    }

    func findings() async -> [Finding] {
        guard let url = URL(string: address), url.scheme == "http", let host = url.host() else {
            return [Finding("server", .warn, "\(address) was not checked", advice: "Only addresses that begin with http:// are")]
        }
        let place = Place(host: host, port: url.port ?? 80, prefix: ServerAddress.prefix(of: url))
        guard let live = await Self.get("/livez", at: place) else {
            return [
                Finding(
                    "server", .warn, "nothing answers at \(address)",
                    advice: "Start it with \(TokenMint.startCommand(of: directory)), or name its address with --url")
            ]
        }
        guard live.status == 200, live.body == "ok\n" else {
            return [
                Finding("server", .fail, "the server at \(address) isn't Roost", advice: "Choose another port for one of them")
            ]
        }
        let version = await Self.get("/openapi.json", at: place).flatMap { Self.version(in: $0.body) } ?? "unknown"
        let ready = await Self.get("/readyz", at: place)
        guard ready?.status == 200 else {
            return [
                Finding(
                    "server", .fail, "\(address) is alive but not ready",
                    advice: "It is starting or stopping: try again in a moment")
            ]
        }
        let found = "\(address) is ready, version \(version)"
        let server: Finding
        switch await isServerOfDirectory(at: place) {
        case true?: server = Finding("server", .ok, found)
        case false?:
            // That server's findings don't concern this directory.
            return [
                Finding(
                    "server", .fail, "the server at \(address), version \(version), doesn't run on \(directory.path)",
                    advice: "Name its directory with --data, or the address of this directory's server with --url")
            ]
        case nil:
            server = Finding(
                "server", .warn, "\(found); whether it runs on \(directory.path) isn't known",
                advice: "Run this as the user who runs the server")
        }
        return [server] + (await Self.get("/metrics", at: place).map { MetricsCheck($0.body).findings() } ?? [])
    }

    /// Whether the server runs on this directory; nil if that can't be found out.
    ///
    /// It sends an expired token. Only a server with the directory's keys answers that it has expired; any other answers that the token
    /// isn't valid. Neither does anything more with it.
    private func isServerOfDirectory(at place: Place) async -> Bool? {
        let secret = SecretFile(directory: directory).url.path
        guard access(secret, F_OK) == 0 || errno != ENOENT else { return false }
        // A copy of the directory has the same keys. On this machine the lock shows which one is being served.
        let isHere = ["127.0.0.1", "localhost", "[::1]", "::1"].contains(place.host)
        let hasReadableLock = access(directory.appending(path: "roost.lock").path, R_OK) == 0 || errno == ENOENT
        if isHere, isDatabaseHere, hasReadableLock {
            let files = FileChecks(directory: directory, isDatabaseHere: true)
            guard files.isServed else { return false }
            // Both may be served. Then their processes are distinguished by their start times.
            if let since = files.servedSince, let page = await Self.get("/metrics", at: place),
                let startedAt = MetricsCheck(page.body).startedAt, abs(startedAt - since) > Self.startSecondsApart
            {
                return false
            }
        }
        // Expiry is checked before the claims, so these needn't follow the server's settings.
        let mint = TokenMint(directory: directory, rules: TokenRules())
        guard let token = try? await mint.token(for: "doctor", expiresAt: Date(timeIntervalSinceNow: -60)),
            let answer = await Self.get("/v1/me", at: place, token: token),
            let problem = try? JSONDecoder().decode(Problem.self, from: Data(answer.body.utf8))
        else { return nil }
        switch problem.refusal.code {
        case .tokenExpired: return true
        case .unauthenticated: return false
        default: return nil
        }
    }

    /// The most by which two readings of one process's start may differ: setting the machine's clock shifts them.
    private static let startSecondsApart = 1.0

    private static func version(in document: String) -> String? {
        struct Document: Decodable {
            struct Info: Decodable { let version: String }
            let info: Info
        }
        return (try? JSONDecoder().decode(Document.self, from: Data(document.utf8)))?.info.version
    }

    /// Makes one small request. It needs no HTTP client: the response is read until the server closes the connection.
    private static func get(_ path: String, at place: Place, token: String? = nil) async -> (status: Int, body: String)? {
        do {
            let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup).connectTimeout(.seconds(3))
                .connect(host: place.host, port: place.port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            let timeout = channel.channel.eventLoop.scheduleTask(in: .seconds(5)) { channel.channel.close(promise: nil) }
            defer { timeout.cancel() }
            var answer = ByteBuffer()
            try await channel.executeThenClose { inbound, outbound in
                let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
                let head = "GET \(place.prefix)\(path) HTTP/1.1\r\nHost: \(place.host):\(place.port)\r\n"
                let request = "\(head)\(authorization)Connection: close\r\n\r\n"
                try await outbound.write(ByteBuffer(string: request))
                for try await piece in inbound { answer.writeImmutableBuffer(piece) }
            }
            return parse(String(buffer: answer))
        } catch {
            return nil
        }
    }

    private static func parse(_ text: String) -> (status: Int, body: String)? {
        guard let end = text.range(of: "\r\n\r\n"), let status = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return nil }
        return (status, String(text[end.upperBound...]))
    }
}
