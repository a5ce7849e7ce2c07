import Foundation
import RoostAPI
import Testing

@testable import Roost
@testable import RoostCommand

/// Mentions on the screen, and completing names with Tab.
@Suite struct MentionMarksTests {
    private func content(_ text: String, _ mentions: [TextMention], _ mentionees: [Mentionee]?) -> MessageContent {
        MessageContent(text: text, metadata: MentionMapper.metadata(from: mentions), mentionees: mentionees)
    }

    private func drawn(_ content: MessageContent, for user: UserID, width: Int = 80, in style: Style? = nil) -> [String] {
        MentionMarks.styled(MentionMarks.text(of: content, for: user).text.wrapped(to: width), in: style)
    }

    @Test("MN-08 names are drawn in bold, the user's own and the channel's in reverse too, and nothing else")
    func styles() {
        let both = content(
            "@Ann ask @Bob", [TextMention(index: 0, length: 3, userId: "ann"), TextMention(index: 9, length: 3, userId: "bob")],
            [.users(["ann", "bob"])])
        #expect(drawn(both, for: "ann") == ["\u{1B}[1;7m@Ann\u{1B}[0m ask \u{1B}[1m@Bob\u{1B}[0m"])
        #expect(drawn(both, for: "zoe", in: .dim) == ["\u{1B}[1m@Ann\u{1B}[0m\u{1B}[2m ask \u{1B}[0m\u{1B}[1m@Bob\u{1B}[0m"])
        #expect(MentionMarks.text(of: both, for: "ann").marksUser && !MentionMarks.text(of: both, for: "zoe").marksUser)
        let all = content("hello @all", [TextMention(index: 6, length: 3)], [.channel])
        #expect(drawn(all, for: "zoe") == ["hello \u{1B}[1;7m@all\u{1B}[0m"])
    }

    @Test("MN-05 metadata alone mark nobody, and places outside the text mark nothing")
    func forged() {
        let mention = TextMention(index: 0, length: 3, userId: "ann")
        #expect(drawn(content("@Ann hi", [mention], nil), for: "ann") == ["@Ann hi"])
        #expect(drawn(content("@Ann hi", [mention], [.users(["bob"])]), for: "ann") == ["@Ann hi"])
        #expect(drawn(content("hi", [TextMention(index: 5, length: 3, userId: "ann")], [.users(["ann"])]), for: "ann") == ["hi"])
        // Other people's texts can't contain marks of their own.
        #expect(drawn(content("\u{2062}hi\u{2061}", [], [.users(["bob"])]), for: "ann") == ["hi"])
    }

    @Test("a mention continues on the next line, and its marks take no columns")
    func lines() {
        let text = content("call @Ann Lee", [TextMention(index: 5, length: 7, userId: "ann")], [.users(["ann"])])
        #expect(drawn(text, for: "ann", width: 9) == ["call \u{1B}[1;7m@Ann\u{1B}[0m", "\u{1B}[1;7mLee\u{1B}[0m"])
        #expect(MentionMarks.text(of: text, for: "ann").text.columnWidth == 13)
    }

    @Test("a partial name can mean members and the channel, and a complete one means the member with that name")
    func choices() {
        let users = [UserSummary(userId: "bob", displayName: "Bob"), UserSummary(userId: "bobby", displayName: "Bobby")]
        let both = users.map(MentionChoice.user)
        #expect(MentionChoice.all(for: "bo", among: users, withChannel: true) == both)
        #expect(MentionChoice.all(for: "bob", among: users, withChannel: true) == [both[0]])
        #expect(MentionChoice.all(for: "", among: users, withChannel: true) == both + [.channel])
        let alla = UserSummary(userId: "alla")
        #expect(MentionChoice.all(for: "al", among: [alla], withChannel: true) == [.user(alla), .channel])
        #expect(MentionChoice.all(for: "all", among: [alla], withChannel: true) == [.channel])
        #expect(MentionChoice.all(for: "all", among: [alla], withChannel: false) == [.user(alla)])
    }

    @Test(
        "a message's text begins after its command, and other commands have none",
        arguments: [
            ("hello", 0), ("//etc", 1), ("/edit hi", 6), ("/EDIT   hi", 8), ("/edit ", 6), ("/edit", nil), ("/join team", nil),
            ("/", nil),
        ] as [(String, Int?)])
    func textStart(line: String, start: Int?) {
        #expect(ChatLine.textStart(in: line) == start)
    }
}
