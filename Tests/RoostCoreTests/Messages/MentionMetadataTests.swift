import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Metadata with the places of mentions")
struct MentionMetadataTests {
    private static func mention(_ index: Int64, _ length: Int64, of user: String? = "cid") -> JSONValue {
        var entry: [String: JSONValue] = ["type": "channel", "index": .integer(index), "length": .integer(length)]
        if let user {
            entry["type"] = "user"
            entry["userId"] = .string(user)
        }
        return .object(entry)
    }

    private static func mentioned(_ entries: JSONValue...) -> JSONValue { ["mentioned": .array(entries)] }

    /// Metadata in the SDK's form with places that the text doesn't have, and in other forms.
    private static let metadata: [JSONValue] = [
        mentioned(mention(1000, 3)), mentioned(mention(3, 1000)), mentioned(mention(-4, 3)), mentioned(mention(3, -3)),
        mentioned(mention(3, 0)), mentioned(mention(.max, .max), mention(.min, .min)),
        // Overlapping ones, of users and of the channel.
        mentioned(mention(3, 3), mention(4, 3, of: "ann"), mention(3, 3, of: nil), mention(3, 3)),
        mentioned(mention(3, 3, of: "nobody"), mention(3, 3, of: ""), ["type": "role"], 7, .null, "x"),
        ["mentioned": "everyone"], ["mentioned": ["cid": [3, 3]]], ["highlights": [[3, 4]]], [:],
    ]

    @Test("MN-05 R34 metadata are the app's own: whatever places they name, they are kept unchanged, and mention nobody")
    func opaque() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben", "cid"])
        func hasMention(_ user: UserID) throws -> Bool {
            try world.perform(GetUnread(channel: "general"), as: user).hasMention
        }
        let ben: [Mentionee] = [.users(["ben"])]
        for (number, metadata) in Self.metadata.enumerated() {
            let send = SendMessage(
                channel: "general", clientId: ClientID("\(number)"), text: "hi @cid", metadata: metadata, mentionees: ben)
            let sent = try world.perform(send, as: "ann")
            #expect(sent.metadata == metadata && sent.mentionees == ben && sent.droppedMentions == nil)
            #expect(try world.perform(GetMessage(channel: "general", message: sent.messageId), as: "cid") == sent)
        }
        #expect(try [hasMention("ben"), hasMention("cid")] == [true, false])

        // Nor do they by an edit, and mentioned users stay mentioned.
        let message = try world.send("plain", to: "general", as: "ann").messageId
        for metadata in Self.metadata {
            let edit = EditMessage(channel: "general", message: message, metadata: metadata)
            let edited = try world.perform(edit, as: "ann")
            #expect(edited.metadata == metadata && edited.mentionees == nil)
        }
        try world.perform(EditMessage(channel: "general", message: message, mentionees: ben), as: "ann")
        let edit = EditMessage(channel: "general", message: message, metadata: ["mentioned": [Self.mention(0, 3)]])
        #expect(try world.perform(edit, as: "ann").mentionees == ben)
        #expect(try [hasMention("ben"), hasMention("cid")] == [true, false])
    }
}
