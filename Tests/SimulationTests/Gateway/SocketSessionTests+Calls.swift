import NIOCore
import RoostAPI
import Testing

@testable import RoostServer

/// Which calls of a socket are read, and when.
extension SocketSessionTests {
    @Test("I18 a call with the number of an unanswered one is refused, and the first one's answer stays its own")
    func repeatedNumber() throws {
        var session = opened()
        let (small, large) = (
            #"{"call":1,"operation":"user.me"}"#, #"{"call":1,"operation":"message.list","with":{"channel":"general"}}"#
        )
        let error = RoostError.invalidArgument("call", "is the number of a call that hasn't been answered yet")
        let actions = receive(Self.client(small, large), in: &session)
        #expect(try actions == [.call(.init(number: 1, operation: GetMe())), .refused(error), Self.refused(error)])
        // So is one that would be refused anyway: its refusal would be taken for the other one's answer.
        let unknown = #"{"call":1,"operation":"nothing.such"}"#
        #expect(try receive(Self.client(unknown), in: &session) == [.refused(error), Self.refused(error)])
        session.send(reply: Array(#"{"reply":1,"result":{}}"#.utf8))
        _ = session.takeUnflushed()
        // Then the number is free.
        #expect(flushed(&session) == [])
        #expect(
            receive(Self.client(large), in: &session)
                == [.call(.init(number: 1, operation: ListMessages(channel: "general")))])
    }

    @Test("I18 the first answer that may be large is in flight alone; the next calls are read once it is sent")
    func budget() {
        var session = opened()
        let list = #"{"call":1,"operation":"message.list","with":{"channel":"general"}}"#
        let next = #"{"call":2,"operation":"message.list","with":{"channel":"general"}}"#
        #expect(
            receive(Self.client(list, next), in: &session)
                == [.call(.init(number: 1, operation: ListMessages(channel: "general"))), .setReading(false)])
        let reply = Array(#"{"reply":1,"result":{}}"#.utf8)
        session.send(reply: reply)
        #expect(session.takeUnflushed() == [Self.frame(#"{"reply":1,"result":{}}"#)])
        #expect(flushed(&session) == [.call(.init(number: 2, operation: ListMessages(channel: "general"))), .setReading(true)])
        // A call that the engine refuses is answered, and no longer counts.
        let full = RoostError(.overloaded, "full")
        #expect(
            session.refuse(2, full) == [.flush([Self.frame(String(decoding: ReplyFrame.refusal(full, call: 2), as: UTF8.self))])])
        #expect(receive(Self.client(list), in: &session).count == 1)
    }

    @Test("a session reports whether exactly one call is under way: the event loop may run that one itself")
    func oneCall() {
        var session = opened()
        #expect(!session.hasOneCall)
        _ = receive(Self.client(#"{"call":1,"operation":"user.me"}"#), in: &session)
        #expect(session.hasOneCall)
        _ = receive(Self.client(#"{"call":2,"operation":"user.me"}"#), in: &session)
        #expect(!session.hasOneCall)
        for call in [1, 2] {
            session.send(reply: Array(#"{"reply":\#(call),"result":{}}"#.utf8))
            #expect(session.hasOneCall == (call == 1))
        }
    }
}
