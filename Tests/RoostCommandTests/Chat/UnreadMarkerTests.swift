import Testing

@testable import RoostCommand

/// The line above the first unread message.
@Suite struct UnreadMarkerTests {
    /// A channel read up to 10, with the user at its newest messages.
    private func read() -> UnreadMarker {
        var marker = UnreadMarker()
        marker.take(unreadCount: 0, readSeq: 10, newest: 10, isOnline: true, isAtBottom: true)
        return marker
    }

    @Test("it marks where reading stopped before the chat began, while the client was away, and while the user had scrolled up")
    func stops() {
        var marker = UnreadMarker()
        marker.take(unreadCount: 3, readSeq: 7, newest: 10, isOnline: true, isAtBottom: true)
        #expect(marker.seq == 7 && !marker.isRead)

        marker = read()
        marker.lostConnection(isAtBottom: true)
        marker.take(unreadCount: 1, readSeq: 10, newest: 11, isOnline: true, isAtBottom: true)
        #expect(marker.seq == 10)

        marker = read()
        marker.take(unreadCount: 1, readSeq: 10, newest: 11, isOnline: true, isAtBottom: false)
        marker.take(unreadCount: 2, readSeq: 10, newest: 12, isOnline: true, isAtBottom: false)
        #expect(marker.seq == 10, "more of them don't move it")
    }

    @Test("messages read on arrival have none")
    func following() {
        var marker = read()
        for seq in 11...13 as ClosedRange<Int64> {
            marker.take(unreadCount: 1, readSeq: seq - 1, newest: seq, isOnline: true, isAtBottom: true)
            marker.take(unreadCount: 0, readSeq: seq, newest: seq, isOnline: true, isAtBottom: true)
        }
        #expect(marker.seq == nil)
    }

    @Test("it stays until the user has pressed a key with it in view, and moves with later reading")
    func moving() {
        var marker = UnreadMarker()
        marker.take(unreadCount: 3, readSeq: 7, newest: 10, isOnline: true, isAtBottom: true)
        marker.pressedKey(isInView: true)
        marker.take(unreadCount: 0, readSeq: 10, newest: 10, isOnline: true, isAtBottom: true)
        #expect(marker.seq == 7 && marker.isRead, "a key before all is read doesn't count")
        marker.take(unreadCount: 1, readSeq: 10, newest: 11, isOnline: true, isAtBottom: true)
        marker.take(unreadCount: 0, readSeq: 11, newest: 11, isOnline: true, isAtBottom: true)
        #expect(marker.seq == 7, "nobody has been there")

        var further = marker
        further.pressedKey(isInView: false)
        further.reachedBottom()
        #expect(further.seq == 7, "it wasn't in view")
        further.pressedKey(isInView: true)
        further.reachedBottom()
        #expect(further.seq == nil)

        marker.pressedKey(isInView: true)
        #expect(marker.seq == 7)
        marker.take(unreadCount: 1, readSeq: 11, newest: 12, isOnline: true, isAtBottom: true)
        #expect(marker.seq == nil)
        marker.take(unreadCount: 0, readSeq: 12, newest: 12, isOnline: true, isAtBottom: true)
        marker.take(unreadCount: 1, readSeq: 12, newest: 13, isOnline: true, isAtBottom: false)
        #expect(marker.seq == 12)
        marker.remove()
        #expect(marker.seq == nil)
    }

    @Test("messages that arrived while the client was away have it, even if an older one was marked as unread meanwhile")
    func leftUnreadAway() {
        var marker = read()
        marker.lostConnection(isAtBottom: true)
        marker.leaveUnread(from: 10, upTo: 10)
        marker.take(unreadCount: 2, readSeq: 9, newest: 11, isOnline: true, isAtBottom: true)
        marker.take(unreadCount: 0, readSeq: 11, newest: 11, isOnline: true, isAtBottom: true)
        #expect(marker.seq == 9)
        marker.pressedKey(isInView: true)
        marker.reachedBottom()
        #expect(marker.seq == nil)
    }

    @Test("a message marked as unread has it, here and on another device, until it is read")
    func leftUnread() {
        var here = read()
        here.leaveUnread(from: 10, upTo: 10)
        #expect(here.seq == 9)
        var late = here
        late.take(unreadCount: 2, readSeq: 9, newest: 11, isOnline: true, isAtBottom: true)
        #expect(late.seq == 9 && late.leftUnread == 10, "what came before the answer is read as it comes")
        here.take(unreadCount: 1, readSeq: 9, newest: 10, isOnline: true, isAtBottom: true)
        var elsewhere = read()
        elsewhere.take(unreadCount: 1, readSeq: 9, newest: 10, isOnline: true, isAtBottom: true)
        #expect(here == elsewhere && here.seq == 9 && here.leftUnread == 10)

        var marked = read()
        marked.leaveUnread(from: 10, upTo: 10)
        marked.take(unreadCount: 0, readSeq: 10, newest: 10, isOnline: true, isAtBottom: true)
        marked.take(unreadCount: 2, readSeq: 9, newest: 11, isOnline: true, isAtBottom: true)
        #expect(marked.seq == 9 && marked.leftUnread == 10, "a mark that was under way is seen first")
        // So it has if the newest message isn't marked as read yet.
        var early = read()
        early.take(unreadCount: 1, readSeq: 10, newest: 11, isOnline: true, isAtBottom: true)
        early.leaveUnread(from: 11, upTo: 11)
        early.take(unreadCount: 1, readSeq: 10, newest: 11, isOnline: true, isAtBottom: true)
        #expect(early.seq == 10 && !early.isRead && early.leftUnread == 11)

        here.pressedKey(isInView: true)
        here.reachedBottom()
        here.lostConnection(isAtBottom: true)
        #expect(here.seq == 9, "it isn't read yet")
        here.take(unreadCount: 2, readSeq: 9, newest: 11, isOnline: true, isAtBottom: true)
        here.take(unreadCount: 0, readSeq: 11, newest: 11, isOnline: true, isAtBottom: true)
        #expect(here.seq == 9 && here.leftUnread == 0, "what came while the client was away has it still")
        here.pressedKey(isInView: true)
        here.reachedBottom()
        #expect(here.seq == nil)
    }
}
