import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("Devices")
struct DeviceTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        return world
    }

    private func refusal(
        _ operation: some Handled, _ world: CoreWorld, token: String? = nil, device: DeviceIdentity? = nil
    ) throws
        -> String?
    {
        let token = token.map { TokenIdentity(user: "ann", id: $0) }
        do {
            _ = try world.perform(operation, as: "ann", token: token, device: device)
            return nil
        } catch let error as RoostError {
            return "\(error.code.rawValue) \(error.field ?? "") \(error.message)"
        }
    }

    private static let signedOut = "token_revoked  This device was signed out. Get another token."
    private static let revoked = "token_revoked  The token was revoked. Get another."

    @Test("a connected device is listed with its name, its platform and its last use, most recently used first")
    func lists() throws {
        let world = try world()
        let start = world.now
        let phone = try world.device("phone", of: "ann", name: "Ann's phone", platform: "iOS")
        world.advance(milliseconds: 1000)
        try world.device("laptop", of: "ann", name: "", platform: "Linux")
        try world.device("phone", of: "bob")
        #expect(
            try world.perform(ListDevices(), as: "ann", device: phone) == [
                Device(
                    deviceId: "laptop", platform: "Linux", createdAt: world.now, lastUsedAt: world.now, isCurrent: false),
                Device(
                    deviceId: "phone", name: "Ann's phone", platform: "iOS", createdAt: start, lastUsedAt: start, isCurrent: true),
            ])
        #expect(try world.perform(ListDevices(), as: "bob").map(\.isCurrent) == [false])
        // Reconnecting is written once a minute, and immediately if something else changed.
        let dump = try world.dump()
        world.advance(milliseconds: 58_000)
        #expect(try world.device("phone", of: "ann", name: "Ann's phone", platform: "iOS") == phone)
        #expect(try world.dump() == dump)
        world.advance(milliseconds: 1000)
        try world.device("phone", of: "ann", name: "Ann's phone", platform: "iOS")
        #expect(try world.perform(ListDevices(), as: "ann").map(\.lastUsedAt) == [world.now, start.after(seconds: 1)])
        try world.device("phone", of: "ann", name: "Phone", platform: "iOS")
        let renamed = try world.perform(ListDevices(), as: "ann").first
        #expect(renamed?.name == "Phone" && renamed?.createdAt == start)
        world.advance(milliseconds: 1000)
        try world.device("phone", of: "ann", name: "Phone", platform: "iOS", token: TokenIdentity(user: "ann", id: "new"))
        #expect(try world.perform(ListDevices(), as: "ann").first?.lastUsedAt == world.now)
    }

    @Test("a device that connected while the clock was a year ahead has the time of its next connection")
    func clockThatWasAhead() throws {
        let world = try world()
        let start = world.now
        world.advance(milliseconds: 365 * 86_400_000)
        try world.device("phone", of: "ann")
        world.now = start
        try world.device("phone", of: "ann")
        world.advance(milliseconds: 1000)
        try world.device("laptop", of: "ann")
        let listed = try world.perform(ListDevices(), as: "ann")
        #expect(listed.map(\.deviceId) == ["laptop", "phone"] && listed.map(\.lastUsedAt) == [world.now, start])
    }

    @Test("signing a device out ends its token and its sockets, and it is listed again when it comes back")
    func signsOut() throws {
        let world = try world()
        let token = TokenIdentity(user: "ann", id: "t1")
        let phone = try world.device("phone", of: "ann", token: token)
        let laptop = try world.device("laptop", of: "ann")
        var answer: SignedOutDevice?
        let notices = try world.notices {
            answer = try world.perform(SignOutDevice(device: "phone"), as: "ann", device: laptop)
        }
        #expect(answer == SignedOutDevice(deviceId: "phone", isTokenRevoked: true))
        #expect(
            notices == [
                .accessChanged([
                    .signedOut("ann", device: "phone", upTo: 1), .revoked(token: "t1", until: world.now.after(seconds: 3600)),
                ])
            ])
        #expect(try world.perform(ListDevices(), as: "ann", device: laptop).map(\.deviceId) == ["laptop"])
        #expect(try refusal(GetMe(), world, token: "t1", device: phone) == Self.signedOut)
        #expect(try refusal(GetMe(), world, token: "t2", device: phone) == Self.signedOut)
        #expect(try refusal(GetMe(), world, token: "t1") == Self.revoked)
        #expect(try refusal(GetMe(), world, token: "t2", device: laptop) == nil)
        // Another user's device has the same id.
        let other = try world.device("phone", of: "bob")
        _ = try world.perform(GetMe(), as: "bob", device: other)

        let dump = try world.dump()
        #expect(try refusal(SignOutDevice(device: "phone"), world) == "not_found device There is no such device.")
        #expect(try refusal(SignOutDevice(device: "unknown"), world) == "not_found device There is no such device.")
        #expect(try world.dump() == dump)

        world.advance(milliseconds: 1000)
        let again = try world.device("phone", of: "ann", token: TokenIdentity(user: "ann", id: "t3"))
        #expect(again == DeviceIdentity(id: "phone", signIn: 2))
        #expect(try refusal(GetMe(), world, token: "t3", device: again) == nil)
        #expect(try refusal(GetMe(), world, token: "t3", device: phone) == Self.signedOut)
        #expect(try world.perform(ListDevices(), as: "ann").first?.createdAt == world.now)
        // Users may sign out their own device.
        #expect(try world.perform(SignOutDevice(device: "phone"), as: "ann", device: again).isTokenRevoked)
        #expect(try refusal(GetMe(), world, token: "t3", device: again) == Self.signedOut)
    }

    @Test("a token without a jti stays valid, as the answer says")
    func withoutTokenID() throws {
        let world = try world()
        let phone = try world.device("phone", of: "ann", token: TokenIdentity(user: "ann"))
        let answer = try world.perform(SignOutDevice(device: "phone"), as: "ann")
        #expect(answer == SignedOutDevice(deviceId: "phone", isTokenRevoked: false))
        #expect(try refusal(GetMe(), world, device: phone) == Self.signedOut)
        #expect(try refusal(GetMe(), world) == nil)
    }

    @Test(
        "a signed-out device's token that has expired is revoked too: a node's clock may be slow, or PostgreSQL's fast",
        arguments: [40, 3600, 7200] as [Int64])
    func tokenThatHasEnded(_ seconds: Int64) throws {
        let world = try world()
        let end = world.now.after(seconds: 10)
        try world.device("phone", of: "ann", token: TokenIdentity(user: "ann", id: "t"), tokenSeconds: 10)
        world.advance(milliseconds: seconds * 1000)
        var answer: SignedOutDevice?
        let notices = try world.notices { answer = try world.perform(SignOutDevice(device: "phone"), as: "ann") }
        #expect(answer == SignedOutDevice(deviceId: "phone", isTokenRevoked: true))
        #expect(
            notices == [.accessChanged([.signedOut("ann", device: "phone", upTo: 1), .revoked(token: "t", until: end)])])
        #expect(try world.rows("SELECT token_id FROM revoked_tokens") { $0.string() } == ["t"])
        #expect(try refusal(GetMe(), world, token: "t") == Self.revoked)
    }

    @Test(
        "a device is signed out even if users have filled their share of the revoked tokens, and admins can still revoke some"
    )
    func manyRevoked() throws {
        let world = try world()
        let share = Int64(Limits.revokedTokens / 10 * 9)
        try world.execute(
            """
            INSERT INTO revoked_tokens (token_id, expires_at, revision)
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(share - 1))
            SELECT 'old-' || n, \(world.now.after(seconds: 60)), n FROM numbers
            """)
        for name in ["1", "2"] { try world.device(DeviceID(name), of: "ann", token: TokenIdentity(user: "ann", id: name)) }
        #expect(try world.perform(SignOutDevice(device: "1"), as: "ann").isTokenRevoked)
        var answer: SignedOutDevice?
        let notices = try world.notices { answer = try world.perform(SignOutDevice(device: "2"), as: "ann") }
        #expect(answer == SignedOutDevice(deviceId: "2", isTokenRevoked: false))
        #expect(notices == [.accessChanged([.signedOut("ann", device: "2", upTo: 1)])])
        #expect(try world.perform(ListDevices(), as: "ann") == [])
        #expect(try world.perform(RevokeToken(tokenId: "2"), as: "root", role: .admin).tokenId == "2")
    }

    @Test("another node finds a sign-out by its number")
    func revisions() throws {
        let world = try world()
        try world.device("phone", of: "ann", token: TokenIdentity(user: "ann", id: "t"))
        func changes(after revision: Int64) throws -> [AccessChange] {
            var changes: [AccessChange] = []
            try world.database.read { transaction in
                try transaction.eachAccessChange(after: revision) { changes.append($0) }
                try transaction.eachSignOut(after: revision) { changes.append($0) }
            }
            return changes
        }
        #expect(try changes(after: 0) == [])
        try world.perform(SignOutDevice(device: "phone"), as: "ann")
        #expect(try changes(after: 0).map(\.subject) == [.token("t"), .device("ann", "phone")])
        let revision = try world.database.read { try $0.accessRevisionAndEpoch().revision }
        #expect(revision == 2)
        #expect(try changes(after: revision) == [])
    }

    @Test("a user has at most 100 devices: the one used longest ago makes room, and its connection stays")
    func makesRoom() throws {
        let world = try world()
        let first = try world.device("d0", of: "ann")
        for number in 1...Limits.devicesPerUser {
            world.advance(milliseconds: 10)
            try world.device(DeviceID("d\(number)"), of: "ann")
        }
        let listed = try world.perform(ListDevices(), as: "ann").map(\.deviceId)
        #expect(listed == (1...100).reversed().map { DeviceID("d\($0)") })
        #expect(try refusal(GetMe(), world, device: first) == nil)
        try world.device("d0", of: "bob")
        #expect(try world.perform(ListDevices(), as: "ann").count == 100)
    }

    @Test("a device that has made room and comes back is signed out with all of its connections, earlier ones too")
    func signsOutAfterMakingRoom() throws {
        let world = try world()
        let first = try world.device("phone", of: "ann")
        try world.perform(SignOutDevice(device: "phone"), as: "ann")
        let second = try world.device("phone", of: "ann")
        for number in 1...Limits.devicesPerUser {
            world.advance(milliseconds: 10)
            try world.device(DeviceID("d\(number)"), of: "ann")
        }
        #expect(try !world.perform(ListDevices(), as: "ann").map(\.deviceId).contains("phone"))
        // It is still in use, and isn't signed out by coming back.
        let third = try world.device("phone", of: "ann")
        for device in [second, third] { #expect(try refusal(GetMe(), world, device: device) == nil) }
        try world.perform(SignOutDevice(device: "phone"), as: "ann")
        for device in [first, second, third] { #expect(try refusal(GetMe(), world, device: device) == Self.signedOut) }
        let fourth = try world.device("phone", of: "ann")
        #expect(try refusal(GetMe(), world, device: fourth) == nil)
    }

    @Test("a device whose row was removed by a sign-out is admitted when it comes back, even where the sign-out is known")
    func comesBackWithoutRow() throws {
        let world = try world()
        let first = try world.device("phone", of: "ann")
        let notices = try world.notices { try world.perform(SignOutDevice(device: "phone"), as: "ann") }
        try world.execute("DELETE FROM devices WHERE device_id = 'phone'")
        let again = try world.device("phone", of: "ann")
        let refusals = notices.flatMap { notice -> [RoostError.Code?] in
            guard case .accessChanged(let changes) = notice else { return [] }
            return [first, again].flatMap { device in
                changes.map { $0.refusal(of: Caller(user: "ann", device: device))?.code }
            }
        }
        #expect(refusals == [.tokenRevoked, nil])
    }

    @Test("values outside the limits are refused with their field in the frame")
    func limits() throws {
        func refusal(_ id: String, _ name: String? = nil, _ platform: String? = nil) -> String? {
            do throws(RoostError) {
                try DeviceDescription(deviceId: DeviceID(id), name: name, platform: platform).validate()
                return nil
            } catch {
                return "\(error.code.rawValue) \(error.field ?? "") \(error.limit ?? 0)"
            }
        }
        func text(_ count: Int) -> String { String(repeating: "x", count: count) }
        #expect(refusal(text(64), text(128), text(32)) == nil)
        #expect(refusal("") == "invalid_argument device.deviceId 0")
        #expect(refusal("a/b") == "invalid_argument device.deviceId 0")
        #expect(refusal(text(65)) == "limit_exceeded device.deviceId 64")
        #expect(refusal("a", text(129)) == "limit_exceeded device.name 128")
        #expect(refusal("a", "a\u{0}") == "invalid_argument device.name 0")
        #expect(refusal("a", nil, text(33)) == "limit_exceeded device.platform 32")
    }
}
