import Foundation
import RoostAPI
import Testing

@testable import RoostCore

/// Pages are bounded by the sizes of their rows. A field that is left out of these would make them larger than they may be.
@Suite("Sizes of rows")
struct ContentSizeTests {
    /// As long as the shortest text that counts. Of shorter ones a row has a few hundred bytes, whatever they hold.
    private static let text = "https://example.com/".padding(toLength: Limits.welcomeLength, withPad: "a", startingAt: 0)

    /// Many texts that are short.
    private static let texts = (0..<30).map { JSONValue.string("text-\($0)".padding(toLength: 60, withPad: "a", startingAt: 0)) }

    /// What a field may hold that takes a long text, or many short ones.
    private static let contents: [JSONValue] = [
        .string(text), .array([.string(text)]), .object(["k": .string(text)]), .object(["k": .array(texts)]),
        .array([.object(["type": .string("user"), "users": .array(texts)])]),
    ]

    /// Returns a value with one of its fields replaced.
    private func setting<Value: Codable>(_ field: String, of value: Value, to content: JSONValue) throws -> Value {
        var fields = try JSONDecoder().decode([String: JSONValue].self, from: Data(JSONWriter.bytes(of: value)))
        fields[field] = content
        return try JSONDecoder().decode(Value.self, from: Data(JSONWriter.bytes(of: JSONValue.object(fields))))
    }

    /// Returns the fields of a row that the request may fill with a long text, and those of them that the row's size leaves out.
    private func longFields<Row: Codable, Request: RoostAPI.Operation>(
        of row: Row, writtenBy request: Request, sizeBytes: (Row) -> Int
    ) throws -> (all: [String], uncounted: [String]) {
        let names = Set(try Schema.of(Row.self).fields.map(\.name))
        let writtenBytes = try JSONWriter.bytes(of: row).count
        var all: [String] = []
        var uncounted: [String] = []
        for name in try Schema.of(Request.self).fields.map(\.name) where names.contains(name) {
            for content in Self.contents {
                guard let given = try? setting(name, of: request, to: content), (try? given.validate()) != nil,
                    let stored = try? setting(name, of: row, to: content)
                else { continue }
                // What takes other values may have been read as nothing. Something that was null until then takes a little less.
                guard try JSONWriter.bytes(of: stored).count - writtenBytes >= Self.text.count / 2 else { continue }
                if !all.contains(name) { all.append(name) }
                if sizeBytes(stored) - sizeBytes(row) < Self.text.count / 2 { uncounted.append(name) }
            }
        }
        return (all, uncounted)
    }

    private let time = Timestamp(milliseconds: 0)

    @Test("X-01 every field of a message that may be long counts in its size")
    func message() throws {
        let message = Message(
            messageId: MessageID(rawValue: 1), channelId: "general", seq: 1, changeSeq: 1, sender: "ann", clientId: "1", text: "x",
            createdAt: time)
        let request = SendMessage(channel: "general", clientId: "1", text: "x")
        let fields = try longFields(of: message, writtenBy: request) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["text", "data", "metadata", "mentionees", "metaArrays"])
    }

    @Test("X-01 every field of a channel that may be long counts in its size")
    func channel() throws {
        let channel = Channel(
            channelId: "general", type: .group,
            counters: ChannelCounters(seq: 1, memberCount: 1, messageCount: 0, lastActivity: time), createdAt: time,
            updatedAt: time)
        let fields = try longFields(of: channel, writtenBy: CreateChannel()) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["coverUrl", "data", "metadata"])
    }

    @Test("X-01 every field of a draft that may be long counts in its size")
    func draft() throws {
        let draft = ChannelDraft(channelId: "general", text: "x", updatedAt: time, userSeq: 1)
        let fields = try longFields(of: draft, writtenBy: SetDraft(channel: "general", text: "x")) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["text", "metadata"])
    }

    @Test("X-01 every field of a user that may be long counts in its size")
    func user() throws {
        let user = User(userId: "ann", createdAt: time, updatedAt: time)
        let fields = try longFields(of: user, writtenBy: UpsertUser(user: "ann")) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["metadata"])
    }

    @Test("X-01 every field of an invitation that may be long counts in its size")
    func invitation() throws {
        let invitation = Invitation(
            channelId: "general", userId: "bob", inviter: "ann", state: .pending, invitedAt: time, revision: 1)
        let request = InviteMembers(channel: "general", users: ["bob"])
        let fields = try longFields(of: invitation, writtenBy: request) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["welcome"])
    }
}
