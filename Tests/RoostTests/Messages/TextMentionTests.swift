import Foundation
import RoostAPI
import Testing

@testable import Roost

@Suite("Mentions in texts")
struct TextMentionTests {
    /// `Tests/Vectors/mentions.json`, which tests in other languages read too.
    private struct Vectors: Decodable {
        struct Case: Decodable, CustomTestStringConvertible {
            var name: String
            var text: String
            var metadata: JSONValue
            var highlights: [String?]
            var testDescription: String { name }
        }
        var cases: [Case]

        static let all: [Case] = {
            let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Vectors/mentions.json")
            return (try? JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file)).cases) ?? []
        }()
    }

    @Test("MN-08 D-18 D-34 the highlights of a text and of an attributed one", arguments: Vectors.all)
    private func highlights(vector: Vectors.Case) throws {
        let mentions = MentionMapper.mentions(from: vector.metadata)
        #expect(
            mentions.map { $0.range(in: vector.text).map { Array(vector.text[$0].utf16) } }
                == vector.highlights.map { $0.map { Array($0.utf16) } })
        let attributed = AttributedString(vector.text)
        let parts = mentions.map { $0.range(in: attributed).map { String(attributed[$0].characters) } }
        #expect(parts.map { $0.map { Array($0.utf16) } } == vector.highlights.map { $0.map { Array($0.utf16) } })
        // MN-06: nothing is lost on the way there and back.
        #expect(MentionMapper.metadata(from: mentions, beside: vector.metadata) == vector.metadata)
        for (mention, range) in zip(mentions, mentions.map { $0.range(in: vector.text) }) {
            guard let range, let made = TextMention(range, in: vector.text, userId: mention.userId) else { continue }
            #expect(made.range(in: vector.text) == range && made.type == mention.type)
        }
        for (mention, range) in zip(mentions, mentions.map { $0.range(in: attributed) }) {
            guard let range, let made = TextMention(range, in: attributed, userId: mention.userId) else { continue }
            #expect(
                made.range(in: attributed) == range
                    && made == TextMention(index: mention.index, length: made.length, userId: mention.userId))
        }
    }

    @Test("MN-11 D-18 an edited message keeps all of its highlights", arguments: Vectors.all)
    private func composed(vector: Vectors.Case) {
        let shown = MentionMapper.mentions(from: vector.metadata).filter { $0.range(in: vector.text) != nil }
        let content = MessageContent(text: vector.text, metadata: vector.metadata, mentionees: shown.mentionees)
        let composer = MentionComposer(editing: content)
        let ranges = Set(MentionMapper.mentions(from: composer.draft.metadata).compactMap { $0.range(in: vector.text) })
        #expect(Set(shown.compactMap { $0.range(in: vector.text) }).isSubset(of: ranges))
        #expect(Set(composer.draft.mentionees?.mentionedUsers ?? []) == Set(shown.mentionees?.mentionedUsers ?? []))
    }

    @Test("MN-06 D-19 the vectors exist, metadata keep their other contents, and unreadable entries are left out")
    func mapper() {
        #expect(Vectors.all.count >= 21)
        let mentions = [TextMention(index: 0, length: 3, userId: "ann"), TextMention(index: 5, length: 3)]
        let metadata = MentionMapper.metadata(from: mentions, beside: ["a": 1])
        #expect(
            metadata == [
                "a": 1,
                "mentioned": [
                    ["type": "user", "index": 0, "length": 3, "userId": "ann"], ["type": "channel", "index": 5, "length": 3],
                ],
            ])
        #expect(MentionMapper.mentions(from: metadata) == mentions)
        #expect(MentionMapper.metadata(from: [], beside: metadata) == ["a": 1])
        #expect(MentionMapper.metadata(from: []) == nil)
        #expect(
            MentionMapper.mentions(from: [
                "mentioned": [
                    1, ["type": "x"], ["type": "user", "index": 0, "length": 3], ["type": "channel", "index": 1.0, "length": 3],
                    ["type": "channel", "index": 1.5, "length": 3],
                ]
            ]) == [TextMention(index: 1, length: 3)])
        for other: JSONValue? in [nil, [:], ["mentioned": "x"]] { #expect(MentionMapper.mentions(from: other) == []) }
    }

    @Test("MN-05 metadata whose places the text doesn't have highlight nothing there, and the message can still be edited")
    func unfitting() {
        func mention(_ index: Int64, _ length: Int64) -> JSONValue {
            ["type": "user", "index": .integer(index), "length": .integer(length), "userId": "ann"]
        }
        // Before the text, empty, overlapping, and beyond the text.
        let metadata: JSONValue = [
            "mentioned": [
                mention(-1, 3), mention(0, 4), mention(1, -3), mention(2, 4), mention(3, 1000), mention(1000, 3),
                mention(.max, .max),
                mention(.min, .min), mention(3, .max),
            ]
        ]
        let mentions = MentionMapper.mentions(from: metadata)
        #expect(MentionMapper.metadata(from: mentions) == metadata)
        func highlights(_ text: String, _ mentions: [TextMention]) -> [String?] {
            mentions.map { $0.range(in: text).map { String(text[$0]) } }
        }
        #expect(highlights("@Jonas, hi", mentions) == [nil, "@Jona", nil, "onas,", nil, nil, nil, nil, nil])
        #expect(highlights("", mentions) == [String?](repeating: nil, count: 9))

        var composer = MentionComposer(text: "@Jonas, hi", mentions: mentions)
        #expect(composer.draft.mentionees == [.users(["ann"])])
        composer.text += " there"
        #expect(highlights(composer.text, composer.mentions) == ["@Jona", "onas,"])
        composer.text = ""
        // An edit without mentions would keep the former ones.
        #expect(composer.query(at: 0) == nil && composer.draft.mentionees == [])
        composer.text = "@An"
        #expect(composer.choose(UserSummary(userId: "ben", displayName: "Ben"), at: 3) == 5)
        #expect(composer.text == "@Ben " && composer.draft.mentionees?.mentionedUsers.contains("ben") == true)
    }

    @Test("a user without a name, who is shown by their id, is mentioned by it")
    func nameless() {
        var composer = MentionComposer(text: "@")
        #expect(composer.choose(UserSummary(userId: "ben", displayName: ""), at: 1) == 5)
        #expect(composer.text == "@ben " && composer.mentions == [TextMention(index: 0, length: 3, userId: "ben")])
    }

    @Test("MN-09 users and the channel are mentioned together, each once")
    func builder() {
        var builder = MentioneesBuilder()
        #expect(builder.mentionees == nil)
        builder.mentionUsers(["ann", "ben"])
        builder.mentionChannel()
        builder.mentionUsers(["ben", "cid"])
        builder.mentionChannel()
        #expect(builder.mentionees == [.users(["ann", "ben", "cid"]), .channel])
    }

    @Test("MN-07 MN-10 a composer suggests, inserts and keeps mentions while the text changes")
    func composer() {
        // The accent belongs to the sign's character.
        #expect(MentionComposer(text: "@\u{301}a").query(at: 1) == "")
        #expect(MentionComposer(text: "@\u{301}a").query(at: 2) == nil)
        var composer = MentionComposer(text: "hi @be")
        #expect(composer.query(at: 6) == "be" && composer.query(at: 4) == "" && composer.query(at: 3) == nil)
        var cursor = composer.choose(UserSummary(userId: "ben", displayName: "Ben 😀"), at: 6)
        #expect(composer.text == "hi @Ben 😀 " && cursor == composer.text.utf16.count)
        // Its own sign starts no other one.
        #expect(composer.query(at: cursor - 1) == nil)
        composer.text += "and @"
        cursor = composer.chooseChannel(at: composer.text.utf16.count)
        #expect(composer.text == "hi @Ben 😀 and @all " && cursor == composer.text.utf16.count)
        composer.text = "oh, " + composer.text
        #expect(composer.mentions.map { $0.range(in: composer.text).map { String(composer.text[$0]) } } == ["@Ben 😀", "@all"])
        #expect(composer.draft.mentionees == [.users(["ben"]), .channel])
        #expect(MentionMapper.mentions(from: composer.draft.metadata) == composer.mentions)
        // A mention that is changed ends; the other one stays in place.
        composer.text = composer.text.replacingOccurrences(of: "Ben", with: "Bean")
        #expect(composer.mentions.map { $0.range(in: composer.text).map { String(composer.text[$0]) } } == ["@all"])
        composer.text = ""
        #expect(composer.mentions == [] && composer.draft.mentionees == nil)
        // Email addresses are none, and neither are places outside of the text.
        composer.text = "ann@example"
        #expect(composer.query(at: 11) == nil && composer.query(at: 99) == nil && composer.query(at: -1) == nil)
        composer.text = "(@"
        #expect(composer.query(at: 2) == "")
        #expect(composer.choose(UserSummary(userId: "x"), at: 99) == 4 && composer.text == "(@x ")
    }

    @Test(
        "MN-09 a sign that is typed right before or after a mention, or deleted there, leaves the mention",
        arguments: [("@@Ben hi", 1), ("@Ben @hi", 0), ("@Ben  hi", 0), ("@ @Ben hi", 2), ("@Benhi", 0), ("Ben hi", nil)]
            as [(String, Int?)])
    func besideMention(text: String, place: Int?) {
        let mention = TextMention(index: 0, length: 3, userId: "ben")
        var composer = MentionComposer(text: "@Ben hi", mentions: [mention])
        composer.text = text
        #expect(composer.mentions.map(\.index) == [place].compactMap(\.self))
        composer.text = "@Ben hi"
        #expect(composer.mentions == (place == nil ? [] : [mention]))
    }
}
