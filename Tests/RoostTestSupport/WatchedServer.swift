public import Foundation
public import RoostAPI
import RoostServer

/// A server in its own process, as an operator sees it: its metrics page and its log.
public struct WatchedServer: Sendable {
    public let process: ServerProcess
    public let directory: URL
    private let logFile: URL
    private let keys: TokenKeys

    public var port: Int { process.port }

    /// Starts one on a new directory, unless one is given.
    public static func start(directory: URL? = nil, arguments: [String] = []) async throws -> WatchedServer {
        let directory = directory ?? TemporaryDirectory.make()
        let logFile = TemporaryDirectory.make().appendingPathExtension("log")
        let process = try await ServerProcess.start(directory: directory, arguments: arguments, logFile: logFile)
        let keys = await TokenKeys(secret: try SecretFile(directory: directory).read())
        return WatchedServer(process: process, directory: directory, logFile: logFile, keys: keys)
    }

    public func token(_ user: UserID, role: AppRole = .user, expiresIn seconds: TimeInterval = 3600) async throws -> String {
        try await keys.sign(.init(user: user, role: role, expiresAt: Date(timeIntervalSinceNow: seconds)))
    }

    public func socket(_ user: UserID) async throws -> RawSocket {
        try await .connect(port: port, token: try await token(user))
    }

    public func request(
        _ method: String, _ path: String, token: String? = nil, body: String? = nil
    ) async throws -> TestServer.Answer {
        let headers = body == nil ? [] : ["Content-Type: application/json"]
        return try await TestServer.request(method, path, port: port, token: token, body: body, headers: headers)
    }

    /// The page as it is now, read strictly.
    public func metrics() async throws -> MetricsText { try MetricsText(try await request("GET", "/metrics").body) }

    /// Everything that it has logged so far.
    public var log: String { (try? String(contentsOf: logFile, encoding: .utf8)) ?? "" }

    /// SIGTERM, and waits for its end.
    @discardableResult
    public func stop() async throws -> Int32 { try await process.stop() }
}
