import RoostAPI
import Testing

@testable import Roost

/// Editing a message with a composer: what it says no more isn't kept.
@Suite("Mentions: editing a message")
struct MentionEditTests {
    private func message(_ text: String, _ mentions: [TextMention], beside others: JSONValue? = nil) -> MessageContent {
        MessageContent(
            text: text, metadata: MentionMapper.metadata(from: mentions, beside: others), mentionees: mentions.mentionees)
    }

    /// What a message is after it was edited to what a composer has.
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

    @Test("MN-11 MN-06 an edit keeps the app's own metadata, whatever becomes of the mentions")
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

    @Test(
        "MN-11 an edit keeps those whom the message mentions without a place in its text, and adds nobody who is only highlighted")
    func unplaced() {
        var content = message("@Ben @Cid", [ben, cid])
        content.mentionees = [.users(["ben", "dan"]), .channel]
        let after = edited(content) { $0.text += "!" }
        #expect(after.mentionees == [.users(["dan", "ben"]), .channel])
        #expect(MentionMapper.mentions(from: after.metadata) == [ben])
        #expect(edited(content) { $0.text = "" }.mentionees == [.users(["dan"]), .channel])
    }

    @Test("MN-10 a message to send says nothing of mentions that it never had; one that is edited keeps no metadata that it hadn't")
    func none() {
        let new = MentionComposer(text: "hi").draft
        #expect(new == MessageDraft(text: "hi"))
        let plain = MentionComposer(editing: MessageContent(text: "hi")).draft
        #expect(plain == MessageDraft(text: "hi", mentionees: []))
        #expect(MentionComposer(text: "hi", metadata: ["mm": 1]).draft == MessageDraft(text: "hi", metadata: ["mm": 1]))
        // A draft that had mentions says that it has none any more: it may be an edit.
        var composer = MentionComposer(text: "@Ben hi", mentions: [ben], metadata: ["mm": 1])
        composer.text = ""
        #expect(composer.draft == MessageDraft(text: "", metadata: ["mm": 1], mentionees: []))
    }
}
