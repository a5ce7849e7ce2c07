import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("Users: ids and names")
struct UserNameTests {
    /// A Korean syllable with its final consonant apart.
    private static let formerSpelling: UserID = "\u{ac00}\u{11a8}"

    @Test(
        "AM-13 new users can't have ids with invisible characters or not in form C, by sign-in or by upsert; existing users keep theirs"
    )
    func newUsers() throws {
        let world = try CoreWorld()
        let before = try world.dump()
        let upserted = try world.refusal(UpsertUser(user: "ann\u{200B}", displayName: "Ann"), as: "root", role: .admin)
        #expect([upserted?.code.rawValue, upserted?.field] == ["invalid_argument", "user"])
        #expect(throws: RoostError.self) { try world.user("bob\u{202E}") }
        #expect(throws: RoostError.self) { try world.user(Self.formerSpelling) }
        #expect(try world.dump() == before)

        for (number, id) in [UserID("old "), Self.formerSpelling].enumerated() {
            let made = try world.user(UserID("user\(number)"))
            try world.execute("UPDATE users SET user_id = \(id) WHERE user_id = \(made)")
            try world.execute("UPDATE user_heads SET user_id = \(id) WHERE user_id = \(made)")
            try world.user(id)
            #expect(try world.perform(UpdateMe(displayName: "Old"), as: id).displayName == "Old")
            #expect(try world.perform(UpsertUser(user: id, displayName: "Older"), as: "root", role: .admin).displayName == "Older")
            #expect(try world.perform(GetUser(user: id), as: id).displayName == "Older")
        }
    }

    @Test(
        "MN-14 X-21 names are found by the basic letters that people type for letters that Unicode doesn't decompose",
        arguments: [
            ("Ødegård", "odegard"), ("Ødegård", "ØDEG"), ("Weiß", "weiss"), ("Æsir", "aes"), ("Łódź", "lodz"), ("Đorđe", "dorde"),
            ("Işık", "isik"), ("Œuvre", "oeuvre"), ("Þór", "thor"), ("Sigurður", "sigurdur"), ("Ħamrun", "hamrun"), ("Øs", "os"),
        ])
    func folding(name: String, text: String) throws {
        let world = try CoreWorld()
        try world.user("one", displayName: name)
        try world.channel("general", owner: "one")
        try world.perform(UpdateChannel(channel: "general", displayName: name), as: "one")
        let members = try world.perform(SearchMembers(channel: "general", text: text), as: "one").items.map(\.member.userId)
        var query = QueryChannels()
        query.nameContains = text
        let own = try world.perform(query, as: "one").items.map(\.channel.channelId)
        query.membership = .all
        let all = try world.perform(query, as: "one").items.map(\.channel.channelId)
        #expect(members == ["one"] && own == ["general"] && all == ["general"])
    }

    @Test("MN-14 AM-09 a database from before finds its names by basic letters too, and its deleted channels have no members")
    func migration() throws {
        let world = try CoreWorld()
        try world.user("one", displayName: "Ødegård")
        try world.channel("general", owner: "one")
        try world.channel("gone", owner: "one")
        try world.perform(DeleteChannel(channel: "gone"), as: "one")
        let names = try world.rows("SELECT name FROM migrations WHERE name LIKE \("0004 letters%")") { $0.string() }
        #expect(names.count == 1)
        // As the version before left it.
        try world.execute("DELETE FROM migrations WHERE name LIKE \("0004 letters%")")
        try world.execute("UPDATE users SET name_key = \("ødegard") WHERE user_id = \("one")")
        try world.execute("DELETE FROM name_grams")
        for gram in ["øde", "deg", "ega", "gar", "ard", "^ø", "^ød"] {
            try world.execute("INSERT INTO name_grams (kind, gram, id) VALUES (\("user"), \(gram), \("one"))")
        }
        try world.execute("UPDATE channel_heads SET member_count = 1 WHERE channel_id = \("gone")")
        try world.database.write(lane: 0) { try Migrations.apply(in: $0) }

        let found = try world.perform(SearchMembers(channel: "general", text: "odegard"), as: "one").items.map(\.member.userId)
        let grams = try world.rows("SELECT gram FROM name_grams WHERE kind = \("user")") { $0.string() }
        #expect(found == ["one"] && !grams.contains { $0.contains("ø") } && grams.contains("ode"))
        #expect(try world.perform(GetChannel(channel: "gone"), as: "one").channel.counters.memberCount == 0)
    }

    @Test("MN-14 MN-15 a former database finds its names by a part that ends within a character of several scalars")
    func migrationOfLetters() throws {
        let world = try CoreWorld()
        for number in 1...1001 { try world.user(UserID("u\(number)")) }
        try world.user("zoe", displayName: "नमस्ते")
        try world.user("zed", displayName: "Zed")
        try world.channel("general", owner: "zoe", members: ["zed"])
        try world.perform(UpdateChannel(channel: "general", displayName: "नमस्ते"), as: "zoe")
        let rows: SQL = "SELECT kind, gram, id FROM name_grams ORDER BY 1, 2, 3"
        let before = try world.rows(rows) { [$0.string(), $0.string(), $0.string()] }
        // As the version before left it, which made grams of characters.
        try world.execute("DELETE FROM migrations WHERE name LIKE \("0031%")")
        for (kind, id) in [("user", "zoe"), ("channel", "general")] {
            try world.execute("DELETE FROM name_grams WHERE kind = \(kind) AND id = \(id)")
            for gram in ["नमस्ते", "^न", "^नम"] {
                try world.execute("INSERT INTO name_grams (kind, gram, id) VALUES (\(kind), \(gram), \(id))")
            }
        }
        func found() throws -> [[String]] {
            let query = QueryChannels(membership: .all, nameContains: "नमस")
            return [
                try world.perform(SearchMembers(channel: "general", text: "नमस"), as: "zed").items.map(\.member.userId.rawValue),
                try world.perform(query, as: "zed").items.map(\.channel.channelId.rawValue),
            ]
        }
        #expect(try found() == [[], []])
        try world.database.write(lane: 0) { try Migrations.apply(in: $0) }
        #expect(try world.rows(rows) { [$0.string(), $0.string(), $0.string()] } == before)
        #expect(try found() == [["zoe"], ["general"]])
    }

    @Test(
        "MN-14 X-21 a former database finds its names that have a Korean final consonant apart, and keeps no gram of their former keys",
        arguments: ["\u{d55c}\u{ad6d}\u{c5b4}", "\u{d558}\u{11ab}"])
    func migrationOfComposedNames(part: String) throws {
        let world = try CoreWorld()
        let former = "\u{d558}\u{11ab}\u{ad6d}\u{c5b4}"
        try world.user("kim", displayName: former)
        try world.user("zed", displayName: "Zed")
        try world.channel("general", owner: "kim", members: ["zed"])
        try world.perform(UpdateChannel(channel: "general", displayName: former), as: "kim")
        let rows: SQL = "SELECT kind, gram, id FROM name_grams ORDER BY 1, 2, 3"
        // By their bytes: in Swift the former grams equal the new ones.
        func grams() throws -> [[[UInt8]]] {
            try world.rows(rows) { [Array($0.string().utf8), Array($0.string().utf8), Array($0.string().utf8)] }
        }
        let before = try grams()
        // As the version before left it, whose keys had the consonant apart too.
        try world.execute("DELETE FROM migrations WHERE name LIKE \("0035%")")
        try world.execute("UPDATE users SET name_key = \(former) WHERE user_id = \("kim")")
        try world.execute("UPDATE channels SET name_key = \(former) WHERE channel_id = \("general")")
        for (kind, id) in [("user", "kim"), ("channel", "general")] {
            try world.execute("DELETE FROM name_grams WHERE kind = \(kind) AND id = \(id)")
            for gram in ["\u{d558}\u{11ab}\u{ad6d}", "\u{11ab}\u{ad6d}\u{c5b4}", "^\u{d558}", "^\u{d558}\u{11ab}"] {
                try world.execute("INSERT INTO name_grams (kind, gram, id) VALUES (\(kind), \(gram), \(id))")
            }
        }
        func found() throws -> [[String]] {
            let query = QueryChannels(membership: .all, nameContains: part)
            return [
                try world.perform(SearchMembers(channel: "general", text: part), as: "zed").items.map(\.member.userId.rawValue),
                try world.perform(query, as: "zed").items.map(\.channel.channelId.rawValue),
            ]
        }
        #expect(try found() == [[], []])
        try world.database.write(lane: 0) { try Migrations.apply(in: $0) }
        #expect(try grams() == before)
        #expect(try found() == [["kim"], ["general"]])
        // Nothing is left once the names are gone.
        try world.perform(UpdateMe(displayName: ""), as: "kim")
        try world.perform(UpdateChannel(channel: "general", displayName: ""), as: "kim")
        let left = try grams().filter { $0[2] != Array("zed".utf8) }
        #expect(left == [])
    }
}
