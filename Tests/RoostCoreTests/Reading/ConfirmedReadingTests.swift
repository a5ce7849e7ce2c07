import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostCore

/// The server's marks for users with a reading session.
@Suite("Confirmed reading")
struct ConfirmedReadingTests {
    @Test("AM-45 I4 after a user marks as unread nothing more is marked for a session, until they begin to read again")
    func markedUnread() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let sent = try ["1", "2", "3"].map { try world.send($0, to: "general", as: "ann") }
        func mark(upTo seq: Seq) throws -> RoostError.Code? {
            do {
                try world.inContext(scope: .channel("general", user: "bob"), as: Caller(user: "bob")) {
                    try MarkRead(channel: "general", seq: seq).handleWhileReading(in: &$0)
                }
                return nil
            } catch let refusal as RoostError { return refusal.code }
        }
        func unreadCount() throws -> Int { try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount }
        try world.perform(StartReading(channel: "general"), as: "bob", connection: 1)
        try world.send("4", to: "general", as: "ann")
        try world.perform(MarkUnread(channel: "general", seq: sent[1].seq), as: "bob")
        let last = try world.send("5", to: "general", as: "ann")
        #expect(try mark(upTo: last.seq) == .notPermitted && unreadCount() == 4)
        // It stays so while they mark as read themselves, up to their former position.
        try world.perform(MarkRead(channel: "general", seq: sent[1].seq), as: "bob")
        #expect(try mark(upTo: last.seq) == .notPermitted && unreadCount() == 3)
        try world.perform(StartReading(channel: "general"), as: "bob", connection: 1)
        let next = try world.send("6", to: "general", as: "ann")
        #expect(try mark(upTo: next.seq) == nil && unreadCount() == 0)
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        #expect(try mark(upTo: next.seq) == .notMember)
    }
}
