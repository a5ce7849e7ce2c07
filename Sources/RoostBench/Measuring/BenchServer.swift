import Foundation
import RoostAPI
import RoostServer

/// A real server in a separate process, on a directory and a free port of this machine.
final class BenchServer {
    let port: UInt16
    /// From the start of the process until it is first ready.
    let startMilliseconds: Double
    private let process: ChildProcess
    private let directory: URL

    var usage: ProcessUsage { process.usage }
    var identifier: Int32 { process.identifier }

    /// - Parameters:
    ///   - settings: Further flags of the server.
    ///   - program: Another build of roost; nil for this one.
    ///   - name: The log's name, for servers that share a directory.
    init(directory: URL, program: URL? = nil, settings: [String] = [], name: String = "server") throws {
        self.directory = directory
        let log = directory.appending(path: "\(name).log")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        port = try LoopbackSocket.freePort()
        // Another version may not know this setting.
        let limits = program == nil ? ["--unauthenticated-connections-per-address", "1000000"] : []
        let start = Clock.now()
        process = try ChildProcess(
            program: program,
            // All load comes from one address, and shutdown shouldn't wait for the window.
            ["serve", "--data", directory.path, "--port", "\(port)", "--drain-window", "0"] + limits + settings,
            errors: try FileHandle(forWritingTo: log))
        while LoopbackSocket.get("/readyz", port: port)?.hasPrefix("HTTP/1.1 200") != true {
            guard process.isRunning, Clock.now() - start < 60_000_000_000 else {
                let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
                throw BenchFailure("the server didn't start: \(text.suffix(2000))")
            }
            usleep(500)
        }
        startMilliseconds = Double(Clock.now() - start) / 1e6
    }

    /// The value of a counter or gauge of /metrics; nil if the server doesn't report it.
    func metric(_ name: String) -> Double? { ServerMetrics.value(of: name, port: port) }

    func end() { process.end() }

    /// Ends the server as a crash would.
    func kill() { process.end(by: SIGKILL) }
}

/// A server's own metrics.
enum ServerMetrics {
    /// The value of a counter or gauge of /metrics; nil if the server doesn't report it.
    static func value(of name: String, port: UInt16) -> Double? {
        let text = LoopbackSocket.get("/metrics", port: port) ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + " ") }
        return line?.split(separator: " ").last.flatMap { Double($0) }
    }
}

/// Tokens of a server, signed with its secret.
struct BenchTokens {
    private let keys: TokenKeys

    init(directory: URL) async throws { keys = await TokenKeys(secret: try SecretFile(directory: directory).readOrMake().secret) }

    func tokens(for users: some Sequence<UserID>) async throws -> [String] {
        var tokens: [String] = []
        for user in users {
            tokens.append(try await keys.sign(.init(user: user, role: .user, expiresAt: Date(timeIntervalSinceNow: 86_400))))
        }
        return tokens
    }
}

/// Plain TCP on 127.0.0.1.
enum LoopbackSocket {
    /// A blocking connection. Negative if nothing listens on the port.
    static func connect(port: UInt16) -> Int32 {
        let socket = make()
        var address = self.address(port: port)
        let result = withSockaddr(&address) { Foundation.connect(socket, $0, $1) }
        guard result == 0 else {
            close(socket)
            return -1
        }
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return socket
    }

    /// A socket that listens on a port; on one chosen by the system if it is 0.
    static func listen(port: UInt16 = 0) throws -> (socket: Int32, port: UInt16) {
        let socket = make()
        var address = self.address(port: port)
        guard withSockaddr(&address, { bind(socket, $0, $1) }) == 0, Foundation.listen(socket, 4096) == 0 else {
            close(socket)
            throw BenchFailure("can't listen on 127.0.0.1")
        }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        return (socket, UInt16(bigEndian: address.sin_port))
    }

    /// A free port below the range that the system uses for connections: thousands of those are made before and while a server is down.
    static func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            guard let (socket, port) = try? listen(port: .random(in: 10_000..<32_768)) else { continue }
            close(socket)
            return port
        }
        throw BenchFailure("no port of 127.0.0.1 is free")
    }

    /// A complete answer to a GET, head and body; nil if there is none.
    static func get(_ path: String, port: UInt16) -> String? {
        let socket = connect(port: port)
        guard socket >= 0 else { return nil }
        defer { close(socket) }
        let request = Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".utf8)
        guard write(socket, request, request.count) == request.count else { return nil }
        var answer: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(socket, &part, part.count)
            guard count > 0 else { return String(decoding: answer, as: UTF8.self) }
            answer += part.prefix(count)
        }
    }

    private static func make() -> Int32 {
        #if os(Linux)
        return socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        #else
        return socket(AF_INET, SOCK_STREAM, 0)
        #endif
    }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    private static func withSockaddr(_ address: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }
}
