import Foundation
import NIOCore
import NIOPosix

/// Whether a server answers at an address.
struct ServerCheck {
    let address: String

    func findings() async -> [Finding] {
        guard let url = URL(string: address), url.scheme == "http", let host = url.host() else {
            return [Finding("server", .warn, "\(address) was not checked", advice: "Only addresses that begin with http:// are")]
        }
        let port = url.port ?? 80
        guard let live = await Self.get("/livez", host: host, port: port) else {
            return [
                Finding(
                    "server", .warn, "nothing answers at \(address)",
                    advice: "Start it with roost serve, or name its address with --url")
            ]
        }
        guard live.status == 200, live.body == "ok\n" else {
            return [
                Finding("server", .fail, "what answers at \(address) isn't Roost", advice: "Choose another port for one of them")
            ]
        }
        let version = await Self.get("/openapi.json", host: host, port: port).flatMap { Self.version(in: $0.body) } ?? "unknown"
        let ready = await Self.get("/readyz", host: host, port: port)
        guard ready?.status == 200 else {
            return [
                Finding("server", .fail, "\(address) is alive but not ready", advice: "It starts or stops: look again in a moment")
            ]
        }
        let metrics = await Self.get("/metrics", host: host, port: port).map { MetricsCheck($0.body).findings() } ?? []
        return [Finding("server", .ok, "\(address) is ready, version \(version)")] + metrics
    }

    private static func version(in document: String) -> String? {
        struct Document: Decodable {
            struct Info: Decodable { let version: String }
            let info: Info
        }
        return (try? JSONDecoder().decode(Document.self, from: Data(document.utf8)))?.info.version
    }

    /// One small request. It has no library of its own: the answer is read until the server closes.
    private static func get(_ path: String, host: String, port: Int) async -> (status: Int, body: String)? {
        do {
            let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup).connectTimeout(.seconds(3))
                .connect(host: host, port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            let timeout = channel.channel.eventLoop.scheduleTask(in: .seconds(5)) { channel.channel.close(promise: nil) }
            defer { timeout.cancel() }
            var answer = ByteBuffer()
            try await channel.executeThenClose { inbound, outbound in
                let request = "GET \(path) HTTP/1.1\r\nHost: \(host):\(port)\r\nConnection: close\r\n\r\n"
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
