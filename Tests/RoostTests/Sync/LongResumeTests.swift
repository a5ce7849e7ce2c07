import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Resumes that are too long: for the time of a call, and for a message.
@Suite("Sync: long resumes")
struct LongResumeTests {
    private func timeouts(_ client: inout Harness) -> [Duration] {
        client.take().compactMap { if case .startTimer(.call(_), let timeout) = $0 { timeout } else { nil } }
    }

    @Test("R39 a resume that had no answer in time has twice as long the next time, up to eight times, until one has caught up")
    func slow() async throws {
        var client = try await Harness()
        var waited: [Duration] = []
        for _ in 0..<5 {
            try await client.connect()
            waited += timeouts(&client)
            try await client.feed(.timer(.call(client.sync.lastCall)))
            guard case .waiting = client.sync.status else { throw Harness.Missing(operation: "a wait") }
            client.forgetCalls()
        }
        #expect(waited == [30, 60, 120, 240, 240].map { .seconds($0) })
        // Nothing is heard while a page is on its way.
        try await client.connect()
        for _ in 0..<32 { try await client.feed(.timer(.liveness)) }
        #expect(client.sync.phase == .catchingUp)
        _ = client.take()
        // The next page has as long.
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: true))
        #expect(timeouts(&client) == [.seconds(240)])
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.sync.phase == .online)
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        _ = client.take()
        try await client.connect()
        #expect(timeouts(&client) == [.seconds(30)])
        for _ in 0..<5 { try await client.feed(.timer(.liveness)) }
        #expect(client.sync.phase == .waiting)
    }

    private struct SentResume: Decodable {
        let operation: String
        let with: Resume
    }

    @Test("R39 positions that a message has no room for are left out, those with the longest ids, and the client is online")
    func large() async throws {
        var settings = Sync.Settings()
        settings.outgoingSizeBytesMax = 3000
        var client = try await Harness(settings: settings)
        let short = (0..<50).map { ChannelID("channel-\($0)") }
        let long = (0..<50).map { ChannelID("\"\($0)\\" + String(repeating: "x", count: 100)) }
        for channel in short + long { client.sync.saved.channels[channel] = Position(cursor: 1_000_000, windowStart: 0) }
        client.sync.saved.epoch = "first"
        try await client.connect()
        let sent = client.take().compactMap { if case .sendAhead(let bytes) = $0 { bytes } else { nil } }
        let frame = try #require(sent.first)
        let named = Set(try JSONDecoder().decode(SentResume.self, from: Data(frame)).with.channels.keys.map { ChannelID($0) })
        #expect(sent.count == 1 && frame.count <= 3000 && frame.count > 2600)
        #expect(named.isSuperset(of: short) && named.count > 60)
        let resumption = Resumption(user: changes(user: 1), channels: [], hasMore: false)
        try await client.answer("stream.resume", with: resumption)
        #expect(client.sync.phase == .online)
    }
}
