import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Resumes that are too long: for the timeout of a call, and for a message.
@Suite("Sync: long resumes")
struct LongResumeTests {
    private func timeouts(_ client: inout Harness) -> [Duration] {
        client.take().compactMap { if case .startTimer(.call(_), let timeout) = $0 { timeout } else { nil } }
    }

    @Test("R39 a resume without an answer in time gets twice as long the next time, up to eight times, until one has caught up")
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
        // Nothing arrives while a page is in flight.
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
        let with: Resume
    }

    /// The resume that was sent since the last query, and the bytes of its message.
    private func sentResume(_ client: inout Harness) throws -> (resume: Resume, sizeBytes: Int) {
        let sent = client.take().compactMap { if case .sendBeforeStoring(let bytes) = $0 { bytes } else { nil } }
        let frame = try #require(sent.last)
        return (try JSONDecoder().decode(SentResume.self, from: Data(frame)).with, frame.count)
    }

    @Test(
        "R39 positions that don't fit one message are sent in parts by id, each requested until it has no more, before the client is online"
    )
    func large() async throws {
        var settings = Sync.Settings()
        settings.outgoingSizeBytesMax = 3000
        var client = try await Harness(settings: settings)
        let short = (0..<50).map { "channel-\($0)" }
        let long = (0..<50).map { "\"\($0)\\" + String(repeating: "x", count: 100) }
        for id in short + long { client.sync.saved.channels[ChannelID(id)] = Position(cursor: 1_000_000, windowStart: 0) }
        client.sync.saved.epoch = "first"
        try await client.connect()
        let nothing = Resumption(user: changes(user: 1), channels: [], hasMore: false)
        var (named, start, isLast) = ([String](), ChannelID?.none, false)
        while !isLast {
            let (resume, sizeBytes) = try sentResume(&client)
            isLast = resume.before == nil
            #expect(sizeBytes <= 3000 && (isLast || sizeBytes > 2400))
            #expect(resume.from == start && resume.channels.keys.allSatisfy(resume.covers))
            named += resume.channels.keys
            start = resume.before
            guard isLast else {
                try await client.answer("stream.resume", with: nothing)
                continue
            }
            // A channel that is new to the client is named as soon as it has arrived.
            try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: true))
            let again = try sentResume(&client).resume
            #expect(again.from == resume.from && again.before == nil && again.channels.count == resume.channels.count + 1)
            #expect(again.channels[Harness.channel.rawValue] == 3 && client.sync.phase == .catchingUp)
            try await client.answer("stream.resume", with: nothing)
        }
        #expect(named.sorted() == (short + long).sorted())
        #expect(client.sync.phase == .online)
        // The next one begins with the first part again.
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.connect()
        let first = try sentResume(&client).resume
        #expect(first.from == nil && first.before != nil)
    }

    @Test("R39 a channel that the user joins while another part is requested is fetched before the client is online")
    func joinedMeanwhile() async throws {
        var settings = Sync.Settings()
        settings.outgoingSizeBytesMax = 3000
        var client = try await Harness(settings: settings)
        for number in 0..<100 {
            let id = ChannelID("\(number < 50 ? "a" : "z")\(number)" + String(repeating: "x", count: 40))
            client.sync.saved.channels[id] = Position(cursor: 1, windowStart: 0)
        }
        client.sync.saved.epoch = "first"
        try await client.connect()
        let nothing = Resumption(user: changes(user: 1), channels: [], hasMore: false)
        // Continues to a part after the channel's id.
        var resume = try sentResume(&client).resume
        while resume.covers(Harness.channel.rawValue) || resume.from == nil {
            try await client.answer("stream.resume", with: nothing)
            resume = try sentResume(&client).resume
        }
        let joined = membership(readSeq: 1, readCount: 0, userSeq: 2)
        try await client.receive(mine(2, .memberJoined, joined, channel: channel(counters(3, messages: 2))))
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 2, [joined]), channels: [], hasMore: false))
        while client.sync.phase == .catchingUp {
            resume = try sentResume(&client).resume
            let isAsked = resume.covers(Harness.channel.rawValue) && resume.channels[Harness.channel.rawValue] == nil
            let channels = isAsked ? [fresh(membership: joined)] : []
            try await client.answer("stream.resume", with: Resumption(user: changes(user: 2), channels: channels, hasMore: false))
        }
        #expect(client.sync.phase == .online)
        #expect(client.sync.saved.channels[Harness.channel]?.cursor == 3)
        #expect(try await client.texts() == ["one", "two"])
    }

    /// The positions that a client names on its next connection.
    private func reconnect(_ client: inout Harness) async throws -> [String: Seq] {
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.connect()
        return try sentResume(&client).resume.channels
    }

    @Test(
        "AM-34 a channel whose deletion this device knows is no longer requested, even after a restart",
        arguments: [true, false])
    func deleted(isLive: Bool) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let rows = Rows(channel: channel(counters(4, messages: 2), deletedAt: Timestamp(milliseconds: 4)))
        if isLive {
            try await client.receive(
                Event(kind: .channelDeleted, stream: .channel(Harness.channel), seq: 4, actor: "bob", rows: rows))
        } else {
            #expect(try await reconnect(&client) == ["general": 3])
            try await client.answer(
                "stream.resume",
                with: Resumption(user: changes(user: 1), channels: [changes(channel: 4, rows)], hasMore: false))
        }
        #expect(client.sync.phase == .online)
        #expect(try await reconnect(&client) == [:])
        var restarted = try await client.restarted()
        try await restarted.connect()
        #expect(try sentResume(&restarted).resume.channels == [:])
        #expect(try await restarted.texts() == ["one", "two"])
    }
}
