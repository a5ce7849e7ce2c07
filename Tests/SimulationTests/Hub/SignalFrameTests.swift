import NIOCore
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// The content of a signal, by receiver.
@Suite("Frames of signals")
struct SignalFrameTests {
    @Test("§4 SB-02 a typing user is sent ten others at most, and that there are more only if there are more others")
    func typing() {
        func signal(_ users: [UserID], hasMore: Bool) -> Signal {
            Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: users, hasMore: hasMore))
        }
        let others = (1...9).map { UserID("u\($0)") }
        for hasMore in [false, true] {
            let frame = SignalFrame(signal(others + ["ann", "bob"], hasMore: hasMore))
            #expect(frame.form(for: "zoe").bytes == SignalFrame(signal(others + ["ann"], hasMore: true)).bytes)
            #expect(frame.form(for: "ann").bytes == SignalFrame(signal(others + ["bob"], hasMore: hasMore)).bytes)
            #expect(frame.form(for: "bob").bytes == SignalFrame(signal(others + ["ann"], hasMore: hasMore)).bytes)
        }
        // Of ten, each is sent nine.
        let ten = SignalFrame(signal(others + ["ann"], hasMore: false))
        #expect(ten.form(for: "ann").bytes == SignalFrame(signal(others, hasMore: false)).bytes)
    }

    @Test("§4 SB-02 the eleventh of eleven typing users isn't notified of more, which would be themselves")
    func eleventh() {
        var board = SignalBoard()
        let users = (1...11).map { UserID("u\($0)") }
        for user in users { board.types(user, in: "general", at: 0) }
        let frames = board.takeDue(at: 0, presence: PresenceBoard()).map { SignalFrame($0) }
        let expected = Signal(
            kind: .typingChanged, channel: "general", typing: TypingUsers(users: Array(users.prefix(10)), hasMore: false))
        #expect(frames.map { $0.form(for: "u11").bytes } == [SignalFrame(expected).bytes])
    }
}
