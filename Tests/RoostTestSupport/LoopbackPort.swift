import Foundation

/// Loopback ports for servers that are killed and restarted.
public enum LoopbackPort {
    /// Returns a free port below those that the system assigns to connections: one of these could be taken by any client while the server
    /// is being made, or is away.
    public static func free() throws -> Int {
        for _ in 0..<100 {
            let port = UInt16.random(in: 10_000..<32_768)
            if isFree(port) { return Int(port) }
        }
        throw Missed("a free port")
    }

    /// Starts a server on free ports, and again on others if another process took one before the server listened.
    static func retryingWhereTaken<Server>(_ start: () async throws -> Server) async throws -> Server {
        for _ in 0..<4 {
            do { return try await start() } catch  where saysPortIsTaken("\(error)") {}
        }
        return try await start()
    }

    /// Whether a server reported that it can't listen on its port, in the words of NATS or PostgreSQL.
    static func saysPortIsTaken(_ text: String) -> Bool { text.lowercased().contains("address already in use") }

    private static func isFree(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
