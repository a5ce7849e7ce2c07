import RoostAPI
import Testing

@testable import Roost
@testable import RoostCommand

/// How an edit of a text changes a message's mentions.
@Suite struct EditedMentionsTests {
    private let bob = TextMention(index: 3, length: 3, userId: "bob")
    private let names = [UserSummary(userId: "bob", displayName: "Bob"), UserSummary(userId: "cat", displayName: "Cat")]

    private func edit(_ content: MessageContent, to composer: MentionComposer) -> EditMessage {
        EditedMentions(of: content, named: names).edit(of: MessageID(rawValue: 7), in: "team", to: composer)
    }

    private func placed(_ mentions: [TextMention], beside others: JSONValue? = nil) -> JSONValue? {
        MentionMapper.metadata(from: mentions, beside: others)
    }

    @Test("MN-06 MN-11 a mention moves with its name and ends with it, and other metadata stay")
    func places() {
        let content = MessageContent(
            text: "hi @Bob", metadata: placed([bob], beside: ["topic": "lunch"]), mentionees: [.users(["bob"])])
        let moved = edit(content, to: MentionComposer(text: "oh, hi @Bob"))
        #expect(moved.text == "oh, hi @Bob" && moved.mentionees == nil)
        #expect(moved.metadata == placed([TextMention(index: 7, length: 3, userId: "bob")], beside: ["topic": "lunch"]))

        let ended = edit(content, to: MentionComposer(text: "hi @Bobby"))
        #expect(ended.mentionees == [] && ended.metadata == ["topic": "lunch"])
        #expect(
            edit(MessageContent(text: "hi @Bob", metadata: placed([bob]), mentionees: [.users(["bob"])]), to: .init()).metadata
                == [:])
    }

    @Test("MN-06 unknown entries in the list of mentions move with the text, or end with it")
    func unknownEntries() {
        func metadata(_ index: Int64, team: Int64?) -> JSONValue {
            let bob: JSONValue = ["type": "user", "index": .integer(index), "length": 3, "userId": "bob", "color": "red"]
            var entries = [bob]
            if let team { entries.insert(["type": "team", "index": .integer(team), "length": 4], at: 0) }
            return ["mentioned": .array(entries)]
        }
        let content = MessageContent(text: "@team @Bob", metadata: metadata(6, team: 0), mentionees: [.users(["bob"])])
        #expect(edit(content, to: MentionComposer(text: "@team @Bob!")).metadata == nil)
        #expect(edit(content, to: MentionComposer(text: "oh, @team @Bob")).metadata == metadata(10, team: 4))
        #expect(edit(content, to: MentionComposer(text: "@ten @Bob")).metadata == metadata(5, team: nil))
    }

    @Test("MN-11 a mention written into the text is added, also the channel's")
    func added() {
        let content = MessageContent(text: "hi @Bob", metadata: placed([bob]), mentionees: [.users(["bob"])])
        var composer = EditedMentions(of: content).composer
        composer.text = "hi @Bob and @c"
        _ = composer.choose(UserSummary(userId: "cat", displayName: "Cat"), at: 14)
        composer.text += "@"
        _ = composer.chooseChannel(at: composer.text.utf16.count)
        let edit = edit(content, to: composer)
        #expect(edit.text == "hi @Bob and @Cat @all " && edit.mentionees == [.users(["bob", "cat"]), .channel])
        #expect(MentionMapper.mentions(from: edit.metadata).map(\.index) == [3, 12, 17])
        // Also in a message without any.
        let plain = self.edit(MessageContent(text: "hi"), to: MentionComposer(text: "hi @Bob", mentions: [bob]))
        #expect(plain.mentionees == [.users(["bob"])] && plain.metadata == placed([bob]))
        #expect(
            self.edit(MessageContent(text: "hi"), to: MentionComposer(text: "ho"))
                == EditMessage(channel: "team", message: MessageID(rawValue: 7), text: "ho"))
    }

    @Test("MN-05 a user named by a script outside the text stays mentioned, unless the text had the name and lost it")
    func unplaced() {
        let content = MessageContent(text: "@Bob: done, @all", mentionees: [.users(["bob", "cat"]), .channel])
        #expect(EditedMentions.usersToName(in: content) == ["bob", "cat"])
        #expect(edit(content, to: MentionComposer(text: "@Bob: done at last, @all")).mentionees == nil)
        let less = edit(content, to: MentionComposer(text: "done"))
        #expect(less.mentionees == [.users(["cat"])] && less.metadata == nil)
        // The app's own form of metadata is unchanged.
        let own = MessageContent(text: "@Bob", metadata: ["a", "b"], mentionees: [.users(["bob"])])
        #expect(edit(own, to: MentionComposer(text: "hi @Bob")).metadata == nil)
    }
}
