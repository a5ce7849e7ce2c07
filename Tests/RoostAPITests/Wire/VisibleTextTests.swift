import RoostAPI
import Testing

@Suite("Invisible characters")
struct VisibleTextTests {
    private func refusal(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            let error = error as? RoostError
            return "\(error?.code.rawValue ?? "-") \(error?.field ?? "-")"
        }
    }

    /// Zero-width, joining, direction-changing, filling and tagging characters, and spaces that look like others.
    private static let invisible = [
        "\u{200B}", "\u{200C}", "\u{200D}", "\u{2060}", "\u{FEFF}", "\u{AD}", "\u{200E}", "\u{200F}", "\u{61C}", "\u{202A}",
        "\u{202E}",
        "\u{2066}", "\u{2069}", "\u{34F}", "\u{115F}", "\u{3164}", "\u{FE0F}", "\u{E0041}", "\u{180E}", "\u{FFFE}", "\u{A0}",
        "\u{3000}",
        "\u{2009}", "\u{2800}", "\u{1D159}",
    ]

    @Test("AM-13 a new id has no invisible or direction-changing character, and no space but U+0020", arguments: invisible)
    func newID(character: String) {
        for text in ["a\(character)b", "\(character)ab", "ab\(character)"] {
            #expect(refusal { try ChannelID(text).validateNew(field: "channel") } == "invalid_argument channel")
            #expect(refusal { try UserID(text).validateNew(field: "user") } == "invalid_argument user")
            let create = refusal { try CreateChannel(channel: ChannelID(text)).validate() }
            #expect(create == "invalid_argument channel")
        }
    }

    @Test("AM-13 a new id has no space at either end; an existing id can still be named")
    func spaces() {
        for text in [" a", "a ", " "] {
            #expect(refusal { try ChannelID(text).validateNew(field: "channel") } == "invalid_argument channel")
            #expect(refusal { try ChannelID(text).validate(field: "channel") } == nil)
        }
        for text in ["a b", "ünï", "語", "😀", "a.b:c", "Ødegård"] {
            #expect(refusal { try ChannelID(text).validateNew(field: "channel") } == nil)
        }
        #expect(refusal { try ChannelID("a\u{200B}b").validate(field: "channel") } == nil)
    }

    @Test(
        "a display name has no invisible or direction-changing character; what scripts and emoji need stays",
        arguments: [
            ("Ann", nil), ("", nil), ("Ann B.", nil), ("می\u{200C}خواهم", nil), ("👩‍👩‍👧‍👦", nil), ("❤️ Rome", nil),
            ("🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}", nil), ("क्\u{200D}ष", nil), ("a\u{A0}b", nil),
            ("Ann\u{202E}", ""), ("\u{200B}Ann", ""), ("A\u{200B}nn", ""), ("\u{200D}", ""), ("Ann\u{200D}", ""),
            ("a \u{200D}b", ""),
            ("a\u{200D}\u{200C}b", ""), ("\u{FE0F}a", ""), ("a\u{7}b", ""), ("a\nb", ""), ("a\u{2028}b", ""), ("\u{3164}", ""),
            (" Ann", ""), ("Ann ", ""), ("Ann\u{3000}", ""), (" ", ""), ("\u{2066}Ann\u{2069}", ""), ("a\u{AD}b", ""),
            ("Ann\u{E0041}\u{E0042}", ""), ("Ann\u{E0061}", ""), ("🏴\u{E0041}", ""), ("🏴a\u{E0061}", ""), ("\u{2800}", ""),
            ("🏴\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E0061}", ""), ("\u{1D159}", ""),
        ] as [(String, String?)])
    func displayName(text: String, isRefused: String?) {
        let expected = isRefused.map { _ in "invalid_argument displayName" }
        let answers = [
            refusal { try UpdateMe(displayName: text).validate() },
            refusal { try UpsertUser(user: "ann", displayName: text).validate() },
            refusal { try CreateChannel(displayName: text).validate() },
            refusal { try UpdateChannel(channel: "general", displayName: text).validate() },
        ]
        #expect(answers == Array(repeating: expected, count: 4))
    }

    @Test("a message's text has a visible character, and may have invisible ones next to it", arguments: invisible)
    func messageText(character: String) {
        func refusals(_ text: String) -> [String?] {
            [
                refusal { try SendMessage(channel: "a", clientId: "1", text: text).validate() },
                refusal { try SendAdminMessage(channels: ["a"], clientId: "1", text: text).validate() },
                refusal { try SendMessage(channel: "a", clientId: "1", text: text, kind: .custom, customType: "t").validate() },
            ]
        }
        for text in [character, "\(character) \(character)", "\n\(character)\t"] {
            #expect(refusals(text) == ["invalid_argument text", "invalid_argument text", nil])
        }
        for text in ["a\(character)", "\(character)a", "👩‍👩‍👧‍👦\(character)"] { #expect(refusals(text) == [nil, nil, nil]) }
    }

    @Test(
        "a text of one visible character is a message, whatever it takes to write it",
        arguments: [
            "👩‍👩‍👧‍👦", "❤️", "1️⃣", "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}", "🇩🇪", "क्\u{200D}ष", ".", "\u{301}",
        ])
    func shortestText(text: String) {
        #expect(refusal { try SendMessage(channel: "a", clientId: "1", text: text).validate() } == nil)
    }

    @Test("AM-06 a duplicate tag is refused, on channels and messages")
    func doubledTags() {
        let message = SendMessage(channel: "a", clientId: "1", text: "x", tags: ["a", "b", "a"])
        let answers = [
            refusal { try CreateChannel(tags: ["a", "a"]).validate() },
            refusal { try UpdateChannel(channel: "a", tags: ["a", "a"]).validate() }, refusal { try message.validate() },
            refusal { try CreateChannel(tags: ["a", "A"]).validate() },
        ]
        #expect(answers == ["invalid_argument tags", "invalid_argument tags", "invalid_argument tags", nil])
    }
}
