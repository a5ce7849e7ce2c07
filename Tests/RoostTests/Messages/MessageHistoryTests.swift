import Observation
import RoostAPI
import Testing

@testable import Roost

/// What a history of the messages on the server requests.
@MainActor @Suite("A channel's history", .timeLimit(.minutes(5)))
struct MessageHistoryTests {
    nonisolated static let places: [(place: MessageHistory.Place, keepsTimesWhole: Bool)] = [
        (.newest, false), (.before(Timestamp(milliseconds: 5)), true), (.after(Timestamp(milliseconds: 5)), true),
        (.around(Timestamp(milliseconds: 5)), true), (.beforeMessage(MessageID(rawValue: 7)), true),
        (.afterMessage(MessageID(rawValue: 7)), true), (.aroundMessage(MessageID(rawValue: 7)), true),
    ]

    @Test("SB-52 no page of a history from a time or a message on ends between messages of the same time", arguments: places)
    func times(place: MessageHistory.Place, keepsTimesWhole: Bool) async throws {
        let server = ScriptedServer { _ in
            .result(MessagePage(messages: [message(3, "m")], hasOlder: true, hasNewer: true, seq: 9))
        }
        let chat = try await server.connected()
        let history = chat.channel("general").history(from: place)
        _ = try await history.loadOlder()
        _ = try await history.loadOlder()
        _ = try await history.loadNewer()
        await chat.disconnect()
        let pages = await server.calls.filter { $0.operation == "message.list" }
        #expect(pages.count == 3)
        for page in pages {
            guard case .object(let fields) = page.with else {
                Issue.record("\(page)")
                return
            }
            #expect(fields["keepsTimesWhole"] == (keepsTimesWhole ? .boolean(true) : nil))
        }
    }

    @Test("SB-48 a view of a history is drawn again when a page begins to load, and when it was the last one")
    func observed() async throws {
        let server = ScriptedServer { _ in
            .result(MessagePage(messages: [message(3, "m")], hasOlder: false, hasNewer: false, seq: 3))
        }
        let chat = try await server.connected()
        let history = chat.channel("general").history()
        let (changes, changed) = AsyncStream.makeStream(of: String.self)
        withObservationTracking {
            _ = history.isLoading
        } onChange: {
            changed.yield("isLoading")
        }
        withObservationTracking {
            _ = history.hasOlder
        } onChange: {
            changed.yield("hasOlder")
        }
        _ = try await history.loadOlder()
        changed.finish()
        var seen: [String] = []
        for await change in changes { seen.append(change) }
        #expect(seen == ["isLoading", "hasOlder"])
        await chat.disconnect()
    }
}
