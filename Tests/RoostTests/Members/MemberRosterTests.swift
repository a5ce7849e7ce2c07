import RoostAPI
import Testing

@testable import Roost

@Suite("Members: rows of a list")
struct MemberRosterTests {
    private func member(
        _ user: UserID, _ joinedSeq: Seq, role: ChannelRole = .member, state: MembershipState = .member, at changeSeq: Seq? = nil
    )
        -> Member
    {
        Member(
            userId: user, role: role, state: state, joinedAt: Timestamp(milliseconds: 0), joinedSeq: joinedSeq,
            changeSeq: changeSeq ?? joinedSeq)
    }

    private func page(_ members: [Member], next: String? = nil) -> Page<MemberEntry> {
        Page(items: members.map { MemberEntry(member: $0, user: nil, isOnline: false) }, nextCursor: next)
    }

    @Test("AM-39 SB-22 R15 a new member is placed by the sort, a former one is removed, and roles filter")
    func follow() {
        var roster = MemberRoster(sort: .firstCreated, roles: nil)
        roster.add(page([member("ann", 1, role: .owner), member("bob", 2)]), isFirst: true)
        roster.apply([member("dan", 5), member("cat", 5), member("bob", 2, state: .none, at: 6)])
        #expect(roster.sorted.map(\.id) == ["ann", "cat", "dan"])
        roster.apply([member("dan", 5, role: .operator, at: 7)])
        #expect(roster.sorted.map(\.member.role) == [.owner, .member, .operator])

        var operators = MemberRoster(sort: .userId, roles: [.operator, .owner])
        operators.add(page([member("ann", 1, role: .owner)]), isFirst: true)
        operators.apply([member("bob", 2, role: .operator, at: 3), member("ann", 1, role: .member, at: 4)])
        #expect(operators.sorted.map(\.id) == ["bob"])

        var backwards = MemberRoster(sort: .userId, order: .descending, roles: nil)
        backwards.add(page([member("dan", 1), member("cat", 2)], next: "more"), isFirst: true)
        backwards.apply([member("eve", 9), member("bob", 8)])
        #expect(backwards.sorted.map(\.id) == ["eve", "dan", "cat"])
    }

    @Test("AM-39 a member beyond the loaded pages appears with their page")
    func behindThePages() {
        var roster = MemberRoster(sort: .firstCreated, roles: nil)
        roster.add(page([member("ann", 1), member("bob", 2)], next: "more"), isFirst: true)
        roster.apply([member("eve", 9)])
        #expect(roster.sorted.map(\.id) == ["ann", "bob"])
        roster.add(page([member("cat", 3), member("eve", 9)]), isFirst: false)
        #expect(roster.sorted.map(\.id) == ["ann", "bob", "cat", "eve"])
        var newest = MemberRoster(sort: .lastCreated, roles: nil)
        newest.add(page([member("cat", 3)], next: "more"), isFirst: true)
        newest.apply([member("eve", 9), member("ann", 1, role: .operator, at: 10)])
        #expect(newest.sorted.map(\.id) == ["eve", "cat"])
    }

    @Test("a page that is older than an event doesn't undo the event")
    func pageAfterEvent() {
        var roster = MemberRoster(sort: .userId, roles: nil)
        roster.add(page([member("ann", 1)], next: "more"), isFirst: true)
        roster.apply([member("bob", 2, state: .none, at: 8), member("cat", 3, role: .operator, at: 9)])
        roster.add(page([member("bob", 2), member("cat", 3)]), isFirst: false)
        #expect(roster.sorted.map { "\($0.id) \($0.member.role)" } == ["ann member", "cat operator"])
    }
}
