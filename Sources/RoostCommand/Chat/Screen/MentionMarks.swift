import Roost
import RoostAPI

/// Marks the mentions in a safe text, so that they can be found once it is broken into lines.
///
/// The marks are invisible characters, which safe texts don't contain (``Swift/String/safe(keepsNewlines:)``) and which take no column.
enum MentionMarks {
    private static let other: Character = "\u{2060}"
    private static let own: Character = "\u{2062}"
    private static let end: Character = "\u{2061}"

    /// The text of a message with marks, safe for a terminal, and whether one of them is the user's or the channel's.
    ///
    /// - Parameter users: The mentioned users, with their names.
    static func text(
        of content: MessageContent, named users: [UserSummary] = [], for user: UserID
    ) -> (text: String, marksUser: Bool) {
        let text = content.text
        guard content.mentionees != nil else { return (text.safe(keepsNewlines: true), false) }
        var (marked, marksUser, start) = ("", false, text.startIndex)
        for mention in EditedMentions(of: content, named: users).placed {
            guard let range = mention.range(in: text), range.lowerBound >= start else { continue }
            let isOwn = mention.userId.map { $0 == user } ?? true
            marksUser = marksUser || isOwn
            marked += String(text[start..<range.lowerBound]).safe(keepsNewlines: true)
            marked.append(isOwn ? own : other)
            marked += String(text[range]).safe(keepsNewlines: true)
            marked.append(end)
            start = range.upperBound
        }
        return (marked + String(text[start...]).safe(keepsNewlines: true), marksUser)
    }

    /// The lines of a marked text as drawn. A mention may continue on the next line.
    ///
    /// - Parameter style: The style of unmarked text.
    static func styled(_ lines: [String], in style: Style?) -> [String] {
        var mark: Style?
        return lines.map { line in
            var (drawn, piece) = ("", "")
            func draw() {
                if !piece.isEmpty { drawn += (mark ?? style)?.applied(to: piece) ?? piece }
                piece = ""
            }
            for character in line {
                switch character {
                case other, own:
                    draw()
                    mark = character == own ? .ownMention : .bold
                case end:
                    draw()
                    mark = nil
                default: piece.append(character)
                }
            }
            draw()
            return drawn
        }
    }
}
