import Foundation
import RoostAPI

/// Messages from one bare socket, as fast as the server accepts them.
struct MessageBurst: Sendable {
    var port: UInt16
    var token: String
    /// The messages sent so far: client ids continue from there.
    private var count = 0
    /// The CPU time in ns that sending them took, which isn't the app's.
    private(set) var cpuTime: UInt64 = 0

    init(port: UInt16, token: String) { (self.port, self.token) = (port, token) }

    /// Sends a message to each of some channels, on a thread that the app's tasks don't run on. Returns when all are answered.
    mutating func send(to channels: [ChannelID]) async throws {
        defer { count += channels.count }
        let before = self
        cpuTime += try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try before.run(channels) }) }
        }
    }

    /// - Returns: The CPU time of this thread.
    private func run(_ channels: [ChannelID]) throws -> UInt64 {
        let startCPU = Clock.threadCPU()
        let loop = LoadLoop()
        try loop.connect(port: port, tokens: [token])
        defer { loop.closeAll() }
        loop.sockets[0].callCount = count
        var answered = 0
        loop.onFrame = { _, frame, _ in if case .reply = frame { answered += 1 } }
        for channel in channels { _ = loop.sockets[0].sendMessage(to: channel.rawValue, text: SampleText.message) }
        try loop.run(timeout: 120) { answered == channels.count }
        return Clock.threadCPU() - startCPU
    }
}
