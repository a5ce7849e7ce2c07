import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Messages that are queued to share a write when the server stops.
@Suite struct DelayedOutputTests {
    @Test(
        "I1 I5 a message acknowledged before the server stops reaches every socket before its close, though it is queued to share a write",
        arguments: [Duration.zero, .milliseconds(100)])
    func shutdown(window: Duration) async throws {
        for number in 1...5 {
            let server = try await TestServer {
                $0.drainWindow = window
                // So an acknowledgement isn't ahead of the other sockets' output.
                $0.eventLoopCount = 1
            }
            let ann = try await server.socket("ann")
            var readers: [RawSocket] = []
            for user in 1...8 { readers.append(try await server.socket(UserID("reader-\(user)"))) }
            try await ann.call(CreateChannel(channel: "general", users: (1...8).map { UserID("reader-\($0)") }))
            // Many calls are in progress all the time, so each socket nearly always has queued output.
            var replies: [Int64] = []
            for message in 1...600 {
                let send = SendMessage(channel: "general", clientId: ClientID("\(message)"), text: "message \(message)")
                replies.append(try await ann.post(send))
            }
            let acknowledged = 200 + 10 * number
            for reply in replies.prefix(acknowledged) { _ = try await ann.reply(to: reply, as: Message.self) }
            await server.beginStop()
            for reader in readers {
                let output = try await Output(until: reader)
                #expect(output.messages == Array(1...max(1, output.messages.count)).map { ClientID("\($0)") })
                #expect(output.messages.count >= acknowledged)
                #expect(output.isNotified)
                #expect(output.end == .close(code: CloseCode.restart.rawValue, reason: "the server restarts"))
            }
            try await server.stop()
        }
    }

    /// Everything that a socket receives until its end.
    private struct Output {
        var messages: [ClientID] = []
        /// Whether it is notified that the server restarts.
        var isNotified = false
        var end: RawSocket.Incoming = .end

        init(until socket: RawSocket) async throws {
            while true {
                end = await socket.next()
                guard case .text(let text) = end else {
                    if end == .ping { continue }
                    return
                }
                if text.hasPrefix(#"{"closing""#) { isNotified = true }
                let frame = try? JSONDecoder().decode(EventFrame.self, from: Data(text.utf8))
                messages += (frame?.event.rows.messages ?? []).compactMap(\.clientId)
            }
        }
    }
}
