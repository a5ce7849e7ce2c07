import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Files that another program removes from a running server: the process ends by itself.
@Suite(.serialized) struct FilesUnderServerTests {
    @Test(
        "I1 a server process whose database is removed or replaced, or log truncated, acks nothing more and ends with status 74",
        .timeLimit(.minutes(5)), arguments: ["removed", "replaced", "cut off"])
    func ends(how: String) async throws {
        let server = try await WatchedServer.start()
        defer { try? FileManager.default.removeItem(at: server.directory) }
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general"))
        try await socket.call(SendMessage(channel: "general", clientId: "1", text: "stored"))

        try harm(server.directory, how)
        // One of the server's own writes may have ended it already.
        _ = try? await socket.post(SendMessage(channel: "general", clientId: "2", text: "lost"))
        let frames = await frames(of: socket)
        #expect(frames.filter { $0.hasPrefix(#"{"reply""#) || $0.contains("lost") } == [])
        let status = await server.process.end(within: .seconds(30))
        #expect(status == 74)
        if status == nil { try await server.process.killNow() }
        #expect(server.log.contains("The server is stopping"))
        await socket.close()
    }

    private func harm(_ directory: URL, _ how: String) throws {
        let database = directory.appending(path: "roost.sqlite")
        guard how != "cut off" else {
            let log = try FileHandle(forUpdating: directory.appending(path: "roost.sqlite-wal"))
            try log.truncate(atOffset: 0)
            return try log.close()
        }
        let data = try Data(contentsOf: database)
        try FileManager.default.removeItem(at: database)
        if how == "replaced" { try data.write(to: database) }
    }

    /// The texts received until the connection ends.
    private func frames(of socket: RawSocket) async -> [String] {
        var frames: [String] = []
        while true {
            switch await socket.next(within: .seconds(30)) {
            case .text(let text): frames.append(text)
            case .ping: continue
            case .close, .end: return frames
            }
        }
    }
}
