import RoostAPI

/// Where reading stopped in the channel on the screen: the line above the first unread message stands there.
///
/// It appears with messages that aren't on the screen as they come, because the client was away or the user had scrolled up, and where messages are
/// marked as unread, here or on another device. Reading takes it away, as soon as it has had its use: when the user writes a message, comes
/// back to the newest messages after having seen it, or pressed a key with it in view and the next message is read as it comes. What was marked as
/// unread has it until that is read.
struct UnreadMarker: Hashable {
    /// How far was read: later messages are below the line. Nil for no line.
    private(set) var seq: Seq?
    /// Whether everything is read.
    private(set) var isRead = true
    /// What was marked as unread, up to where: reading begins after it.
    private(set) var leftUnread: Seq = 0
    /// Whether that was done here, and the position hasn't moved back yet.
    private var isLeaving = false
    private var readSeq: Seq = 0
    /// Whether new messages are read as they come. Before the first are read and after the connection was away, they are not: what came
    /// meanwhile gets the line.
    private var isFollowing = false
    /// Whether the user was there with the line in view and everything read.
    private var isSeen = false

    /// The membership is as the client knows it now.
    ///
    /// - Parameters:
    ///   - newest: The newest message on the screen.
    ///   - isAtBottom: Whether new messages are on the screen as they come.
    mutating func take(unreadCount: Int, readSeq: Seq, newest: Seq, isOnline: Bool, isAtBottom: Bool) {
        // Only marking as unread moves the position back.
        let isMovedBack = readSeq < self.readSeq
        self.readSeq = readSeq
        guard unreadCount > 0 else {
            let wasFollowing = isFollowing
            (isRead, isFollowing) = (true, isOnline)
            // A mark that was under way may be seen before what the user has marked as unread.
            guard !isLeaving || newest > leftUnread else { return }
            // What came while the client was away has the line still, and so has what was left above it.
            if leftUnread > 0, wasFollowing { remove() }
            (leftUnread, isLeaving) = (0, false)
            return
        }
        if isMovedBack {
            (seq, isSeen, isRead) = (readSeq, false, false)
            // What the user has marked here is known: more may have come before the server has answered.
            if !isLeaving { leftUnread = max(leftUnread, newest) }
            isLeaving = false
        } else if isRead {
            isRead = false
            if !isFollowing || !isAtBottom {
                (seq, isSeen) = (readSeq, false)
            } else if isSeen {
                remove()
            }
        }
    }

    /// The user marks messages as unread: those of a seq and after it, up to the newest on the screen.
    mutating func leaveUnread(from seq: Seq, upTo newest: Seq) {
        // The position needn't move back for it: the mark of what came last may not be on its way yet.
        (self.seq, isSeen, isRead) = (seq.subtractingWithSaturation(1), false, false)
        (leftUnread, isLeaving) = (max(seq, newest), true)
    }

    /// The connection is lost: what comes meanwhile isn't read as it comes.
    mutating func lostConnection(isAtBottom: Bool) {
        isFollowing = false
        if isAtBottom, isRead { remove() }
    }

    /// The user has pressed a key.
    mutating func pressedKey(isInView: Bool) { if isInView, isRead { isSeen = true } }

    /// The user has come to the newest messages, or was there and wants to go on.
    mutating func reachedBottom() { if isSeen { remove() } }

    /// The user has written a message, or goes to another place.
    mutating func remove() { (seq, isSeen) = (nil, false) }
}
