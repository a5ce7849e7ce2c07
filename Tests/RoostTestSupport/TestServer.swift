public import Foundation
public import Logging
public import RoostAPI
package import RoostCore
public import RoostServer
import ServiceLifecycle

/// A real server in this process, on a free loopback port, with its own data directory.
public final class TestServer: Sendable {
    public let port: Int
    public let directory: URL
    private let keys: TokenKeys
    private let group: ServiceGroup
    private let server: RoostServer
    private let running: Task<Void, any Error>

    public var url: URL {
        var components = URLComponents()
        components.scheme = "http"
        components.host = "127.0.0.1"
        components.port = port
        guard let url = components.url else { preconditionFailure("An address of loopback is a URL.") }
        return url
    }

    /// Starts a server, in a new directory unless one is given.
    public init(
        directory: URL? = nil, options: AppOptions = AppOptions(), logger given: Logger? = nil,
        _ change: @Sendable (inout RoostServer.Configuration) -> Void = { _ in }
    ) async throws {
        self.directory = directory ?? TemporaryDirectory.make()
        var configuration = RoostServer.Configuration(dataDirectory: self.directory)
        configuration.port = 0
        configuration.drainWindow = .milliseconds(100)
        configuration.eventLoopCount = 2
        configuration.options = options
        change(&configuration)
        let port = Mailbox<Int>()
        var logger = given ?? Logger(label: "test")
        if given == nil { logger.logLevel = .critical }
        let server = try await RoostServer(configuration: configuration, logger: logger) { port.put($0) }
        let group = ServiceGroup(configuration: .init(services: [server], logger: logger))
        self.group = group
        self.server = server
        running = Task { try await group.run() }
        guard let listening = await port.next() else { throw Missed("a listening server") }
        self.port = listening
        keys = await TokenKeys(secret: try SecretFile(directory: self.directory).read())
    }

    private static let sharedServer = Task { try await TestServer() }

    /// A server for all tests that leave it unchanged or use their own names: starting one takes longer than most of them. It runs until the
    /// process ends.
    public static func shared() async throws -> TestServer { try await sharedServer.value }

    public func token(_ user: UserID, role: AppRole = .user, expiresIn seconds: TimeInterval = 3600) async throws -> String {
        try await keys.sign(.init(user: user, role: role, expiresAt: Date(timeIntervalSinceNow: seconds)))
    }

    public func socket(_ user: UserID, role: AppRole = .user) async throws -> RawSocket {
        try await .connect(port: port, token: try await token(user, role: role))
    }

    /// Stops the server as SIGTERM does, and waits until it has ended.
    public func stop() async throws {
        try await end()
        try TemporaryPlace.waitUntilFree(directory)
    }

    /// Stops the server, and waits only until it reports its end.
    public func end() async throws {
        await group.triggerGracefulShutdown()
        try await running.value
    }

    /// Runs an internal change of the server's in a transaction.
    package func perform(_ run: @escaping @Sendable (inout Context) throws -> Void) async throws { try await server.perform(run) }

    /// Runs an operation past the network, even one that only a test knows.
    package func perform(_ operation: some Handled, as user: UserID) async throws { try await server.perform(operation, as: user) }

    /// Starts to shut down, without waiting.
    public func beginStop() async { await group.triggerGracefulShutdown() }

    // MARK: HTTP

    public struct Answer: Sendable {
        public let status: Int
        public let headers: [String: String]
        public let body: String

        public init(status: Int, headers: [String: String], body: String) {
            self.status = status
            self.headers = headers
            self.body = body
        }

        public func decoded<T: Decodable>(_ type: T.Type = T.self) throws -> T {
            try JSONDecoder().decode(type, from: Data(body.utf8))
        }
        /// The code of a problem document.
        public var code: String? {
            (try? decoded(JSONValue.self))?["code"].flatMap { if case .string(let code) = $0 { code } else { nil } }
        }
    }

    /// One HTTP request on its own connection.
    public func request(
        _ method: String, _ path: String, token: String? = nil, body: String? = nil, headers: [String] = []
    ) async throws
        -> Answer
    {
        try await Self.request(method, path, port: port, token: token, body: body, headers: headers)
    }

    /// The same for any server on this machine.
    public static func request(
        _ method: String, _ path: String, port: Int, token: String? = nil, body: String? = nil, headers: [String] = []
    ) async throws -> Answer {
        let connection = try await RawConnection.connect(port: port)
        var head = ["\(method) \(path) HTTP/1.1", "Host: 127.0.0.1", "Connection: close"] + headers
        if let token { head.append("Authorization: Bearer \(token)") }
        if let body { head.append("Content-Length: \(body.utf8.count)") }
        try await connection.send(head.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
        let text = await connection.receiveAll()
        await connection.close()
        return try parse(text)
    }

    public static func parse(_ text: String) throws -> Answer {
        guard let end = text.range(of: "\r\n\r\n") else { throw Missed("an answer: \(text.prefix(200))") }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw Missed("a status")
        }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces) }
        }
        return Answer(status: status, headers: headers, body: String(text[end.upperBound...]))
    }
}
