import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Users")
struct UserTests {
    @Test("a user exists from the first use of a token, and the next use leaves them unchanged")
    func admits() throws {
        let world = try CoreWorld()
        try world.user("ann", displayName: "Ann")
        let before = try world.dump()
        let notices = try world.notices { try world.user("ann", displayName: "Other") }
        #expect(notices == [])
        #expect(try world.dump() == before)
        let expected = User(userId: "ann", displayName: "Ann", createdAt: world.now, updatedAt: world.now)
        #expect(try world.perform(GetMe(), as: "ann") == expected)
    }

    @Test("an upsert creates a user, and later replaces the given fields")
    func upserts() throws {
        let world = try CoreWorld()
        let created = try world.perform(UpsertUser(user: "ann", displayName: "Ann", metadata: ["a": 1]), as: "root", role: .admin)
        world.advance(milliseconds: 5)
        let updated = try world.perform(UpsertUser(user: "ann", avatarFileId: "file", metadata: ["b": 2]), as: "root", role: .admin)
        var expected = created
        expected.avatarFileId = "file"
        expected.metadata = ["b": 2]
        expected.updatedAt = world.now
        expected.version = created.version + 1
        #expect(updated == expected)
        #expect(try world.perform(GetUser(user: "ann"), as: "ann") == expected)
    }

    @Test("AM-13 users whose ids are equal as texts and differ in their bytes are two users")
    func spellings() throws {
        let world = try CoreWorld()
        let users = try ["\u{105c9}", "\u{105d2}\u{307}"].map { try world.user(UserID($0)) }
        #expect(try Set(world.perform(GetUsers(users: users), as: users[0]).map(\.userId)) == Set(users))
        #expect(try Set(world.perform(ListUserPresence(users: users), as: users[0]).users.map(\.userId)) == Set(users))
        #expect(Set(users).count == 2)
    }

    @Test("the version says which of two profiles is newer, whatever the clock did between them")
    func versions() throws {
        let world = try CoreWorld()
        let first = try world.perform(UpsertUser(user: "ann", displayName: "Ann"), as: "root", role: .admin)
        world.advance(milliseconds: -7_200_000)
        let second = try world.perform(UpsertUser(user: "ann", displayName: "Anna"), as: "root", role: .admin)
        let same = try world.perform(UpsertUser(user: "ann", displayName: "Anna"), as: "root", role: .admin)
        #expect([first.version, second.version, same.version] == [1, 2, 2])
        #expect(second.updatedAt < first.updatedAt)
        #expect(try world.perform(GetUser(user: "ann"), as: "bob") == second)
    }

    @Test("X-37 a status is set, changed and removed like a name, and refused with characters that a name may not have")
    func status() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        func shown() throws -> String? { try world.perform(ListChangedUsers(versions: ["ann": 0]), as: "bob").users.first?.status }
        #expect(try world.perform(UpdateMe(status: "on holiday"), as: "ann").status == "on holiday")
        #expect(try shown() == "on holiday" && world.perform(GetUser(user: "ann"), as: "bob").status == "on holiday")
        for wrong in [" away", "a\u{200B}b", "a\u{202E}b", "a\nb"] {
            let refusal = try world.refusal(UpdateMe(status: wrong), as: "ann")
            #expect(refusal?.code == .invalidArgument && refusal?.field == "status")
        }
        #expect(try world.perform(UpdateMe(displayName: "Ann"), as: "ann").status == "on holiday")
        #expect(try world.perform(UpsertUser(user: "ann", status: "🏖️"), as: "root", role: .admin).status == "🏖️")
        #expect(try world.perform(UpdateMe(status: ""), as: "ann").status == nil)
        #expect(try shown() == nil)
    }

    @Test("several users are returned once each, unknown ones not at all")
    func getsMany() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        let found = try world.perform(GetUsers(users: ["bob", "nobody", "ann", "bob"]), as: "ann").map(\.userId)
        #expect(found == ["ann", "bob"])
        #expect(try world.perform(GetUsers(users: []), as: "ann") == [])
    }

    @Test("users whose profiles exceed a page are refused together, and returned in two calls")
    func getsManyLarge() throws {
        let world = try CoreWorld()
        let ids = (0..<12).map { UserID("user-\($0 + 10)") }
        let metadata: JSONValue = ["text": .string(String(repeating: "x", count: 95_000))]
        for id in ids { _ = try world.perform(UpsertUser(user: id, metadata: metadata), as: "root", role: .admin) }
        let error = try world.refusal(GetUsers(users: ids), as: "ann")
        #expect(error?.code == .limitExceeded && error?.field == "users" && error?.limit == Int64(Limits.pageContentBytes))
        let halves = try [ids.prefix(6), ids.suffix(6)].flatMap { try world.perform(GetUsers(users: Array($0)), as: "ann") }
        #expect(halves.map(\.userId) == ids)
    }

    @Test("an unknown user is not found")
    func unknown() throws {
        let world = try CoreWorld()
        let codes = try [world.code(GetUser(user: "nobody"), as: "ann"), world.code(GetMe(), as: "nobody")]
        #expect(codes == [.notFound, .notFound])
    }
}
