import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("Deleting messages")
struct DeletionTests {
    /// The columns that stay of a deleted message: its position, its sender, and the times of its changes.
    private static let place: Set<String> = [
        "channel_id", "seq", "message_id", "change_seq", "ordinal", "counts", "sender_id", "client_id", "parent_id", "created_at",
        "edited_at", "deleted_at", "kind", "is_silent",
    ]

    @Test("SB-59 deleting a message empties every column with its content")
    func everyColumn() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let parent = try world.send("first", to: "general", as: "ann")
        let message = try world.perform(
            SendMessage(
                channel: "general", clientId: "c", text: "text", customType: "kind", data: "data",
                metadata: .object(["a": .integer(1)]),
                tags: ["tag"], parentId: parent.messageId, mentionees: [.channel], metaArrays: ["k": ["v"]], pushOption: .suppress,
                targetLanguages: ["de"]), as: "ann")
        try world.perform(EditMessage(channel: "general", message: message.messageId, text: "edited"), as: "ann")
        let before = try columns(of: message, in: world)
        #expect(Self.place.isSubset(of: before.keys))
        // A new column is either part of the place or filled by this test.
        #expect(before.filter { !Self.place.contains($0.key) && ($0.value ?? "").isEmpty }.map(\.key) == [])

        try world.perform(DeleteMessage(channel: "general", message: message.messageId), as: "ann")
        let after = try columns(of: message, in: world)
        // The default of an option reveals nothing.
        let isEmptied = { (column: String, value: String?) in
            (value ?? "").isEmpty || (column == "push_option" && value == "default")
        }
        #expect(after.filter { !Self.place.contains($0.key) && !isEmptied($0.key, $0.value) }.map(\.key) == [])
    }

    @Test("I18 R24 kept versions that a deletion doesn't touch don't count for the limit of a call")
    func untouchedVersions() throws {
        let world = try CoreWorld()
        (world.options.undeletionSeconds, world.options.versionSeconds) = (86_400, 3600)
        try world.channel("room", owner: "ann", members: ["ben"])
        let long = String(repeating: "\u{1F600}", count: 19_990)
        let sent = try (0..<8).map { number in
            let content = SendMessage(channel: "room", clientId: ClientID("\(number)"), text: "0 \(long)", data: long)
            let message = try world.perform(content, as: "ben").messageId
            for text in 1..<10 {
                try world.perform(EditMessage(channel: "room", message: message, text: "\(text) \(long)"), as: "ben")
            }
            try world.perform(EditMessage(channel: "room", message: message, text: "short", data: ""), as: "ben")
            return message
        }
        try world.perform(DeleteMessages(channel: "room", messages: sent), as: "ben")
    }

    /// The columns of a message's row by their names, as text.
    private func columns(of message: Message, in world: CoreWorld) throws -> [String: String?] {
        let names: SQL =
            switch TestDatabase.Engine.chosen {
            case .sqlite: "SELECT name FROM pragma_table_info('messages') ORDER BY cid"
            case .postgresql:
                """
                SELECT column_name FROM information_schema.columns
                WHERE table_schema = current_schema() AND table_name = 'messages' ORDER BY ordinal_position
                """
            }
        let columns = try world.rows(names) { $0.string() }
        let sql: SQL = "SELECT * FROM messages WHERE channel_id = \(message.channelId) AND seq = \(message.seq)"
        let values = try world.rows(sql) { row in columns.map { _ in row.optionalString() } }
        return Dictionary(uniqueKeysWithValues: zip(columns, try #require(values.first)))
    }
}
