import RoostAPI
import Testing

@testable import Roost

/// Editing a message with a composer: removed content isn't kept.
@Suite("Mentions: editing a message")
struct MentionEditTests {
    private func message(_ text: String, _ mentions: [TextMention], beside others: JSONValue? = nil) -> MessageContent {
        MessageContent(
            text: text, metadata: MentionMapper.metadata(from: mentions, beside: others), mentionees: mentions.mentionees)
    }

    /// A message after it was edited to a composer's content.
    private func edited(_ content: MessageContent, _ change: (inout MentionComposer) -> Void) -> MessageContent {
        var composer = MentionComposer(editing: content)
        change(&composer)
        let draft = composer.draft
        var edited = content
        edited.apply(
            EditMessage(
                channel: "general", message: MessageID(rawValue: 1), text: draft.text, metadata: draft.metadata,
                mentionees: draft.mentionees))
        return edited
    }

    private let ben = TextMention(index: 0, length: 3, userId: "ben")
    private let cid = TextMention(index: 5, length: 3, userId: "cid")

    @Test("MN-11 an edit that removes the last mention mentions nobody, and highlights nothing")
    func last() {
        let after = edited(message("@Ben hi", [ben])) { $0.text = "hi" }
        #expect(after.mentionees == nil && after.text == "hi")
        #expect(MentionMapper.mentions(from: after.metadata) == [])
        let draft = MentionComposer(editing: message("@Ben hi", [ben])).draft
        #expect(draft.mentionees == [.users(["ben"])])
    }

    @Test("MN-11 MN-06 an edit keeps the app's own metadata, whatever happens to the mentions")
    func metadata() {
        let content = message("@Ben @Cid", [ben, cid], beside: ["mm": 12])
        let fewer = edited(content) { $0.text = "@Ben" }
        #expect(fewer.mentionees == [.users(["ben"])])
        #expect(fewer.metadata == MentionMapper.metadata(from: [ben], beside: ["mm": 12]))
        let none = edited(content) { $0.text = "nobody" }
        #expect(none.mentionees == nil && none.metadata == ["mm": 12])
        let more = edited(MessageContent(text: "@be", metadata: ["mm": 12])) {
            _ = $0.choose(UserSummary(userId: "ben", displayName: "Ben"), at: 3)
        }
        #expect(more.mentionees == [.users(["ben"])] && more.metadata == MentionMapper.metadata(from: [ben], beside: ["mm": 12]))
    }

    @Test("MN-06 MN-11 an edit keeps a mention's other fields, and unknown entries: they move with the text, or end with it")
    func unknownEntries() {
        func metadata(_ entries: [JSONValue]) -> JSONValue { ["mm": 12, "mentioned": .array(entries)] }
        func ben(at index: Int64) -> JSONValue {
            ["type": "user", "index": .integer(index), "length": 3, "userId": "ben", "color": "red"]
        }
        func team(at index: Int64) -> JSONValue { ["type": "team", "index": .integer(index), "length": 6, "teamId": "design"] }
        let poll: JSONValue = ["type": "poll", "poll": 7]
        let content = MessageContent(
            text: "hi @design and @Ben", metadata: metadata([poll, ben(at: 15), team(at: 3), "own"]), mentionees: [.users(["ben"])])
        #expect(edited(content) { $0.text += "!" }.metadata == content.metadata)
        let moved = edited(content) { $0.text = "oh, " + $0.text }
        #expect(moved.metadata == metadata([poll, ben(at: 19), team(at: 7), "own"]) && moved.mentionees == [.users(["ben"])])
        let between = edited(content) {
            $0.text = "hi @design, @Ben"
            $0.text = "@design, @Ben"
        }
        #expect(between.metadata == metadata([poll, ben(at: 9), team(at: 0), "own"]))
        // Each ends with its own text. One without a place stays.
        #expect(
            edited(content) { $0.text = "hi @designers and @Ben" }.metadata == metadata([poll, ben(at: 18), team(at: 3), "own"]))
        #expect(edited(content) { $0.text = "hi @desk and @Ben" }.metadata == metadata([poll, ben(at: 13), "own"]))
        #expect(edited(content) { $0.text = "hi @design" }.metadata == metadata([poll, team(at: 3), "own"]))
        #expect(edited(content) { $0.text = "" }.metadata == metadata([poll, "own"]))
        // A range outside of the text is no place in it.
        let outside: JSONValue = ["type": "poll", "index": 70, "length": 0]
        let short = MessageContent(text: "hi", metadata: metadata([outside]), mentionees: nil)
        #expect(edited(short) { $0.text = "oh, hi" }.metadata == metadata([outside]))
        // Its sign starts no other mention, and one after it is added at the end.
        var composer = MentionComposer(editing: content)
        #expect(composer.query(at: 6) == nil)
        composer.text += " @c"
        _ = composer.choose(UserSummary(userId: "cid", displayName: "Cid"), at: 22)
        let cid: JSONValue = ["type": "user", "index": 20, "length": 3, "userId": "cid"]
        #expect(composer.draft.metadata == metadata([poll, ben(at: 15), team(at: 3), "own", cid]))
    }

    @Test(
        "MN-11 an edit keeps the users whom the message mentions without a place in its text, and adds none who are only highlighted"
    )
    func unplaced() {
        var content = message("@Ben @Cid", [ben, cid])
        content.mentionees = [.users(["ben", "dan"]), .channel]
        let after = edited(content) { $0.text += "!" }
        #expect(after.mentionees == [.users(["dan", "ben"]), .channel])
        #expect(MentionMapper.mentions(from: after.metadata) == [ben])
        #expect(edited(content) { $0.text = "" }.mentionees == [.users(["dan"]), .channel])
    }

    @Test("MN-10 a message to send says nothing of mentions that it never had; an edited one keeps no metadata that it hadn't")
    func none() {
        let new = MentionComposer(text: "hi").draft
        #expect(new == MessageDraft(text: "hi"))
        let plain = MentionComposer(editing: MessageContent(text: "hi")).draft
        #expect(plain == MessageDraft(text: "hi", mentionees: []))
        #expect(MentionComposer(text: "hi", metadata: ["mm": 1]).draft == MessageDraft(text: "hi", metadata: ["mm": 1]))
        // A draft that had mentions says that it has none now: it may be an edit.
        var composer = MentionComposer(text: "@Ben hi", mentions: [ben], metadata: ["mm": 1])
        composer.text = ""
        #expect(composer.draft == MessageDraft(text: "", metadata: ["mm": 1], mentionees: []))
    }
}
