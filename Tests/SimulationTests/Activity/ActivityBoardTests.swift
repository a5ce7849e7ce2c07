import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// When it is stored that users were online, at times that the tests give.
@Suite("Activity")
struct ActivityBoardTests {
    private static let quarter: Int64 = 15 * 60 * 1000

    @Test("X-37 the end of a user's last connection is stored with its time; connecting, or returning before then, stores nothing")
    func going() {
        var board = ActivityBoard()
        #expect(board.rest(at: 0) == nil)
        board.came("ann", at: 0)
        #expect(board.takeDue(at: 0) == [:])
        board.went("ann", at: 500)
        #expect(board.rest(at: 500) == 100)
        #expect(board.takeDue(at: 600) == ["ann": 500])
        #expect(board.takeDue(at: 700) == [:] && board.rest(at: 700) == nil)
        board.went("bob", at: 800)
        board.came("bob", at: 850)
        #expect(board.takeDue(at: 900) == [:])
    }

    @Test("X-37 users who reconnect at once, again and again, are stored as often as those who stay")
    func returning() {
        var board = ActivityBoard()
        for user in ["ann", "bob"] as [UserID] { board.came(user, at: 0) }
        var found: [UserID: [Int64]] = [:]
        for minute in Int64(1)...60 {
            let now = minute * 60_000
            if minute % 10 == 0 {
                board.went("ann", at: now)
                board.came("ann", at: now + 50)
            }
            for (user, time) in board.takeDue(at: now + 100) { found[user, default: []].append(time) }
        }
        let times: [Int64] = [15, 30, 45, 60].map { $0 * 60_000 + 100 }
        #expect(found == ["ann": times, "bob": times])
        // A user who leaves for good has no record after that.
        board.went("ann", at: 3_600_200)
        #expect(board.takeDue(at: 3_600_300) == ["ann": 3_600_200])
        #expect(board.takeAll(at: 3_600_400) == ["bob": 3_600_400])
    }

    @Test("X-37 records that couldn't be stored are retried after a second; users who left again or are online get their new time")
    func failing() {
        var board = ActivityBoard()
        for user in ["ann", "bob", "cid"] as [UserID] {
            board.came(user, at: 0)
            board.went(user, at: 500)
        }
        let due = board.takeDue(at: 600)
        #expect(due.count == 3)
        board.came("bob", at: 610)
        board.came("cid", at: 610)
        board.went("cid", at: 620)
        board.takeBack(due, at: 650)
        #expect(board.rest(at: 650) == 1000 && board.takeDue(at: 1600) == [:])
        #expect(board.takeDue(at: 1650) == ["ann": 500, "bob": 1650, "cid": 620])
        #expect(board.takeDue(at: 1750) == [:])
    }

    @Test(
        "X-37 a record of an online user that couldn't be stored is retried after a second, and the next is due a quarter after that"
    )
    func failingOnce() {
        var board = ActivityBoard()
        board.came("ann", at: 0)
        #expect(board.takeDue(at: Self.quarter) == ["ann": Self.quarter])
        board.takeBack(["ann": Self.quarter], at: Self.quarter + 50)
        #expect(board.rest(at: Self.quarter + 50) == 1000)
        let later = Self.quarter + 1100
        #expect(board.takeDue(at: later) == ["ann": later])
        #expect(board.takeDue(at: later + 1000) == [:] && board.rest(at: later + 1000) == Self.quarter - 1000)
        // A user who left meanwhile is stored once, with the time of leaving.
        board.takeBack(["ann": later], at: later + 2000)
        board.went("ann", at: later + 2500)
        #expect(board.takeDue(at: later + 3000) == ["ann": later + 2500])
        #expect(board.takeDue(at: later + 4000) == [:] && board.rest(at: later + 4000) == nil)
    }

    @Test("X-37 users who stay are stored every 15 minutes, several of them in one look a minute")
    func staying() {
        var board = ActivityBoard()
        for number in 0..<40 { board.came(UserID("u\(number)"), at: Int64(number) * 1000) }
        _ = board.takeDue(at: 40_000)
        #expect(board.rest(at: 40_000) == Self.quarter - 40_000)
        var found: [Int64: Int] = [:]
        var now: Int64 = 40_000
        while now < 2 * Self.quarter + 120_000 {
            let due = board.takeDue(at: now)
            if !due.isEmpty { found[now] = due.count }
            #expect(due.values.allSatisfy { $0 == now })
            now += board.rest(at: now) ?? 1
        }
        // The first user is due alone, and all others at the next look.
        #expect(found.values.sorted() == [1, 1, 39, 39])
        #expect(found.keys.min() == Self.quarter)
    }

    @Test("X-37 of 10,000 users who leave or stay at one moment, 100 are stored at a time, each once; at shutdown all together")
    func many() {
        let users = (0..<10_000).map { UserID("u\($0)") }
        for isGoing in [true, false] {
            var board = ActivityBoard()
            for user in users { board.came(user, at: 0) }
            if isGoing { for user in users { board.went(user, at: 1) } }
            var (now, stored) = (isGoing ? 1 : Self.quarter, [UserID]())
            for _ in 0..<100 {
                let due = board.takeDue(at: now)
                #expect(due.count == 100 && board.rest(at: now).map { $0 >= 100 } != false)
                stored += due.keys
                now += 100
            }
            #expect(Set(stored).count == 10_000)
            #expect(board.takeDue(at: now) == [:])
        }
        var board = ActivityBoard()
        for user in users { board.came(user, at: 0) }
        for user in users.prefix(10) { board.went(user, at: 1) }
        let all = board.takeAll(at: 7)
        #expect(all.count == 10_000 && all[users[0]] == 1 && all[users[10]] == 7)
        #expect(board.takeAll(at: 8) == [:] && board.rest(at: 8) == nil)
    }
}
