import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Users and tokens that are shut out.
@Suite struct AccessTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        return world
    }

    private func code(_ world: CoreWorld, as user: UserID, issuedAt: Timestamp?, id: String? = nil) throws -> RoostError.Code? {
        try world.code(GetMe(), as: user, token: TokenIdentity(user: user, issuedAt: issuedAt, id: id))
    }

    @Test("a deactivated user is refused everywhere, and all of their data stays")
    func deactivation() throws {
        let world = try world()
        try world.send("before", to: "general", as: "bob")
        let deactivated = try world.perform(DeactivateUser(user: "bob"), as: "root", role: .admin)
        #expect(deactivated.deactivatedAt == world.now)
        for operation in [
            GetMe(), SendMessage(channel: "general", clientId: "x", text: "x"), Resume(after: 0, channels: [:]),
            UpdateMe(displayName: "x"), LeaveChannel(channel: "general"), QueryChannels(),
        ] as [any Handled] {
            let refusal = try world.refusal(operation, as: "bob")
            #expect(refusal?.code == .userDeactivated && refusal?.code.httpStatus == 403, "\(type(of: operation).name)")
        }
        // Others write to the channel, which still has its member.
        try world.send("after", to: "general", as: "ann")
        #expect(try world.perform(ListMembers(channel: "general"), as: "ann").items.map(\.member.userId).contains("bob"))

        let again = try world.perform(ReactivateUser(user: "bob"), as: "root", role: .admin)
        #expect(again.deactivatedAt == nil)
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 1)
    }

    @Test("I22 deactivating and reactivating twice changes nothing the second time")
    func twice() throws {
        let world = try world()
        for operation in [DeactivateUser(user: "bob"), ReactivateUser(user: "bob")] as [any Handled] {
            _ = try world.refusal(operation, as: "root", role: .admin)
            let before = try world.dump()
            world.advance(milliseconds: 1000)
            var refusal: RoostError?
            let notices = try world.notices { refusal = try world.refusal(operation, as: "root", role: .admin) }
            #expect(notices == [] && refusal == nil)
            #expect(try world.dump() == before)
        }
    }

    @Test("only admins see who is deactivated")
    func visibility() throws {
        let world = try world()
        try world.perform(DeactivateUser(user: "bob"), as: "root", role: .admin)
        #expect(try world.perform(GetUser(user: "bob"), as: "ann").deactivatedAt == nil)
        #expect(try world.perform(GetUsers(users: ["bob"]), as: "ann").map(\.deactivatedAt) == [nil])
        #expect(try world.perform(GetUser(user: "bob"), as: "root", role: .service).deactivatedAt == world.now)
        #expect(
            try world.perform(GetUsers(users: ["ann", "bob"]), as: "root", role: .admin).map(\.deactivatedAt) == [nil, world.now])
        // Nor does a profile that an admin changes reveal it.
        let notices = try world.notices {
            let written = try world.perform(UpsertUser(user: "bob", displayName: "Bob"), as: "root", role: .admin)
            #expect(written.deactivatedAt == world.now)
        }
        for case .event(let event, _) in notices { #expect(event.rows.users?.map(\.deactivatedAt) == [nil]) }
    }

    @Test("AM-40 a deactivated user can be added to a channel, and finds it there after reactivation")
    func adding() throws {
        let world = try world()
        try world.user("cat")
        try world.perform(DeactivateUser(user: "cat"), as: "root", role: .admin)
        try world.perform(AddMembers(channel: "general", users: ["cat"]), as: "ann")
        try world.perform(ReactivateUser(user: "cat"), as: "root", role: .admin)
        #expect(try world.perform(GetMember(channel: "general", user: "cat"), as: "cat").member.userId == "cat")
    }

    @Test("a backend that acts for a deactivated user is refused, and a deactivated backend acts for nobody")
    func actingFor() throws {
        let world = try world()
        try world.user("backend")
        let token = TokenIdentity(user: "backend", issuedAt: world.now)
        #expect(try world.code(GetMe(), as: "bob", token: token) == nil)
        try world.perform(DeactivateUser(user: "bob"), as: "root", role: .admin)
        #expect(try world.code(GetMe(), as: "bob", token: token) == .userDeactivated)
        try world.perform(DeactivateUser(user: "backend"), as: "root", role: .admin)
        #expect(try world.code(GetMe(), as: "ann", token: token) == .userDeactivated)
        try world.perform(ReactivateUser(user: "backend"), as: "root", role: .admin)
        world.advance(milliseconds: 1)
        try world.perform(RevokeUserTokens(user: "backend"), as: "root", role: .admin)
        #expect(try world.code(GetMe(), as: "ann", token: token) == .tokenRevoked)
    }

    @Test("a user's tokens issued before a moment are refused, those without iat too, but newer ones aren't")
    func beforeAMoment() throws {
        let world = try world()
        let old = world.now
        world.advance(milliseconds: 5000)
        let answer = try world.perform(RevokeUserTokens(user: "bob"), as: "root", role: .admin)
        #expect(answer == TokenRevocation(userId: "bob", before: world.now))
        #expect(try code(world, as: "bob", issuedAt: old) == .tokenRevoked)
        #expect(try code(world, as: "bob", issuedAt: nil) == .tokenRevoked)
        #expect(try code(world, as: "bob", issuedAt: world.now) == nil)
        #expect(try code(world, as: "ann", issuedAt: nil) == nil)
        // The moment doesn't go back.
        let before = try world.dump()
        #expect(try world.perform(RevokeUserTokens(user: "bob", before: old), as: "root", role: .admin) == answer)
        #expect(try world.dump() == before)
        // It survives being deactivated and reactivated.
        try world.perform(DeactivateUser(user: "bob"), as: "root", role: .admin)
        try world.perform(ReactivateUser(user: "bob"), as: "root", role: .admin)
        #expect(try code(world, as: "bob", issuedAt: old) == .tokenRevoked)
        #expect(try code(world, as: "bob", issuedAt: world.now) == nil)
    }

    @Test(
        "tokens are revoked up to a minute ahead: one issued before that moment is refused, now and later, one issued at it isn't"
    )
    func aheadOfNow() throws {
        let world = try world()
        let now = world.now
        let before = Timestamp(milliseconds: now.milliseconds + 60_000)
        let answer = try world.perform(RevokeUserTokens(user: "bob", before: before), as: "root", role: .admin)
        #expect(answer == TokenRevocation(userId: "bob", before: before))
        for time in [now, before, before.after(seconds: 60)] {
            world.now = time
            let issued = [now.milliseconds, before.milliseconds - 1, before.milliseconds].map(Timestamp.init(milliseconds:))
            #expect(try issued.map { try code(world, as: "bob", issuedAt: $0) } == [.tokenRevoked, .tokenRevoked, nil])
        }
    }

    @Test(
        "tokens issued until now by the node's clock are revoked if the database's is behind it, and by the database's if that is ahead"
    )
    func clocksApart() throws {
        let world = try world()
        let early = world.now
        let late = early.after(seconds: 300)
        for (user, database, machine) in [("cat", early, late), ("dan", late, early)] as [(UserID, Timestamp, Timestamp)] {
            try world.user(user)
            (world.now, world.machineNow) = (database, machine)
            let revoked = try world.perform(RevokeUserTokens(user: user), as: "root", role: .admin)
            #expect(revoked == TokenRevocation(userId: user, before: late))
            #expect(try code(world, as: user, issuedAt: Timestamp(milliseconds: late.milliseconds - 1)) == .tokenRevoked)
            #expect(try code(world, as: user, issuedAt: late) == nil)
            let last = late.after(seconds: 60)
            let tooLate = RevokeUserTokens(user: user, before: Timestamp(milliseconds: last.milliseconds + 1))
            #expect(try world.refusal(tooLate, as: "root", role: .admin)?.field == "before")
            #expect(try world.perform(RevokeUserTokens(user: user, before: last), as: "root", role: .admin).before == last)
        }
    }

    @Test("a single token is refused until it would have expired, and forgotten once it has by a clock a day slow")
    func singleToken() throws {
        let world = try world()
        let end = Timestamp(milliseconds: world.now.milliseconds + 60_000)
        let revoked = try world.perform(RevokeToken(tokenId: "t1", expiresAt: end), as: "root", role: .service)
        #expect(revoked == RevokedToken(tokenId: "t1", expiresAt: end))
        let longest = try world.perform(RevokeToken(tokenId: "t2"), as: "root", role: .admin).expiresAt
        #expect(longest == world.now.after(seconds: AppOptions().tokenLifetimeSecondsMax + 60))
        #expect(try code(world, as: "bob", issuedAt: world.now, id: "t1") == .tokenRevoked)
        #expect(try code(world, as: "bob", issuedAt: world.now, id: "T1") == nil)
        #expect(try code(world, as: "bob", issuedAt: world.now) == nil)
        let before = try world.dump()
        #expect(try world.perform(RevokeToken(tokenId: "t1", expiresAt: end), as: "root", role: .admin) == revoked)
        #expect(try world.dump() == before)
        func kept() throws -> [String] { try world.rows("SELECT token_id FROM revoked_tokens ORDER BY 1") { $0.string() } }
        world.advance(milliseconds: 86_400_000 + 59_000)
        try world.perform(RevokeToken(tokenId: "t3"), as: "root", role: .admin)
        #expect(try kept() == ["t1", "t2", "t3"])
        world.advance(milliseconds: 1000)
        try world.perform(RevokeToken(tokenId: "t4"), as: "root", role: .admin)
        #expect(try kept() == ["t2", "t3", "t4"])
    }

    @Test("a single token stays revoked after the clock was an hour ahead for a moment, in which another was revoked")
    func clockThatWasAhead() throws {
        let world = try world()
        let start = world.now
        try world.perform(RevokeToken(tokenId: "t1", expiresAt: start.after(seconds: 600)), as: "root", role: .admin)
        world.advance(milliseconds: 3_600_000)
        try world.perform(RevokeToken(tokenId: "t2"), as: "root", role: .admin)
        world.now = start
        #expect(try code(world, as: "bob", issuedAt: start, id: "t1") == .tokenRevoked)
    }

    @Test("the 100,000 revocations of expired tokens that ended last are kept, so one isn't lost while the clock is ahead")
    func mostExpiredTokens() throws {
        let world = try world()
        let start = world.now
        func end(inMinutes minutes: Int64) -> Timestamp { Timestamp(milliseconds: start.milliseconds + minutes * 60_000) }
        try world.execute(
            """
            INSERT INTO revoked_tokens (token_id, expires_at, revision)
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(Limits.revokedTokens - 2))
            SELECT 'old-' || n, \(end(inMinutes: -60)), n FROM numbers
            """)
        try world.execute(
            """
            INSERT INTO revoked_tokens (token_id, expires_at, revision)
            VALUES ('oldest', \(end(inMinutes: -61)), 1), ('valid', \(end(inMinutes: 60)), 1)
            """)
        func kept() throws -> [String] {
            try world.rows("SELECT token_id FROM revoked_tokens WHERE token_id NOT LIKE 'old-%' ORDER BY token_id") { $0.string() }
        }
        func count() throws -> [Int] { try world.rows("SELECT COUNT(*) FROM revoked_tokens") { $0.int() } }
        // The expired ones leave room for others.
        try world.perform(RevokeToken(tokenId: "t1"), as: "root", role: .admin)
        #expect(try kept() == ["oldest", "t1", "valid"])
        world.advance(milliseconds: 2 * 3_600_000)
        try world.perform(RevokeToken(tokenId: "t2"), as: "root", role: .admin)
        #expect(try kept() == ["t1", "t2", "valid"])
        #expect(try count() == [Limits.revokedTokens + 1])
        world.now = start
        #expect(try code(world, as: "bob", issuedAt: start, id: "valid") == .tokenRevoked)
    }

    @Test("100,000 single tokens can be revoked at a time, and the next is refused until one of them would have expired")
    func mostTokens() throws {
        let world = try world()
        let soon = Timestamp(milliseconds: world.now.milliseconds + 1000)
        try world.execute(
            """
            INSERT INTO revoked_tokens (token_id, expires_at, revision)
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(Limits.revokedTokens - 1))
            SELECT 'old-' || n, \(soon), n FROM numbers
            """)
        func revoke(_ token: String) throws -> RoostError? {
            try world.refusal(RevokeToken(tokenId: token), as: "root", role: .admin)
        }
        #expect(try revoke("last") == nil)
        let over = try revoke("over")
        #expect(
            [over?.code, over?.field, over?.limit] as [AnyHashable?] == [RoostError.Code.limitExceeded, "tokenId", Int64(100_000)])
        #expect(try code(world, as: "bob", issuedAt: world.now, id: "over") == nil)
        // The revocation of one of them can be extended.
        #expect(try revoke("old-1") == nil)
        world.now = soon.after(seconds: 60)
        #expect(try revoke("over") == nil)
    }

    @Test("an impossible revocation names its field, and changes nothing")
    func refusals() throws {
        let world = try world()
        let before = try world.dump()
        let later = Timestamp(milliseconds: world.now.milliseconds + 60_001)
        let tries: [(any Handled, RoostError.Code, String)] = [
            (DeactivateUser(user: "nobody"), .notFound, "user"), (ReactivateUser(user: "nobody"), .notFound, "user"),
            (RevokeUserTokens(user: "nobody"), .notFound, "user"), (DeactivateUser(user: ""), .invalidArgument, "user"),
            (RevokeUserTokens(user: "bob", before: later), .invalidArgument, "before"),
            (RevokeToken(tokenId: ""), .invalidArgument, "tokenId"),
            (RevokeToken(tokenId: "a\u{0}"), .invalidArgument, "tokenId"),
            (RevokeToken(tokenId: String(repeating: "x", count: 129)), .limitExceeded, "tokenId"),
            (RevokeToken(tokenId: "t", expiresAt: world.now.minusClockSkew), .invalidArgument, "expiresAt"),
        ]
        for (operation, code, field) in tries {
            let refusal = try world.refusal(operation, as: "root", role: .admin)
            #expect([refusal?.code.rawValue, refusal?.field] == [code.rawValue, field], "\(operation)")
            #expect(try world.code(operation, as: "ann") != nil)
        }
        #expect(try world.dump() == before)
    }

    @Test("every change of access has a number, by which another node finds it")
    func revisions() throws {
        let world = try world()
        func changes(after revision: Int64) throws -> [AccessChange] {
            var changes: [AccessChange] = []
            try world.database.read { try $0.eachAccessChange(after: revision) { changes.append($0) } }
            return changes
        }
        try world.perform(DeactivateUser(user: "bob"), as: "root", role: .admin)
        try world.perform(RevokeToken(tokenId: "t1"), as: "root", role: .admin)
        #expect(try world.database.read { try $0.accessRevisionAndEpoch().revision } == 2)
        #expect(try changes(after: 1).map(\.subject) == [.token("t1")])
        try world.perform(ReactivateUser(user: "bob"), as: "root", role: .admin)
        #expect(try changes(after: 2) == [.user("bob", isDeactivated: false, validFrom: nil)])
        #expect(try changes(after: 3) == [])
    }
}
