import RoostAPI

/// The position at which reading stopped in the channel on the screen, where a line is shown above the first unread message.
///
/// It appears with messages that aren't on the screen when they arrive, because the client was offline or the user had scrolled up, and
/// where messages are marked as unread, here or on another device. Reading removes it once it has served its purpose: when the user writes
/// a message, returns to the newest messages after having seen it, or has pressed a key with it in view and the next message is read on
/// arrival. Messages marked as unread keep it until they are read.
struct UnreadMarker: Hashable {
    /// The seq up to which messages were read: later ones are below the line. Nil for no line.
    private(set) var seq: Seq?
    /// Whether everything is read.
    private(set) var isRead = true
    /// The last seq marked as unread: reading begins after it.
    private(set) var leftUnread: Seq = 0
    /// Whether the marking was done here, and the position hasn't moved back yet.
    private var isLeaving = false
    private var readSeq: Seq = 0
    /// Whether new messages are read on arrival. Before the first messages are read, and after a lost connection, they aren't: messages
    /// that arrive meanwhile get the line.
    private var isFollowing = false
    /// Whether the user was present with the line in view and everything read.
    private var isSeen = false

    /// Takes the current membership as known to the client.
    ///
    /// - Parameters:
    ///   - newest: The newest message on the screen.
    ///   - isAtBottom: Whether new messages are on the screen when they arrive.
    mutating func take(unreadCount: Int, readSeq: Seq, newest: Seq, isOnline: Bool, isAtBottom: Bool) {
        // Only marking as unread moves the position back.
        let isMovedBack = readSeq < self.readSeq
        self.readSeq = readSeq
        guard unreadCount > 0 else {
            let wasFollowing = isFollowing
            (isRead, isFollowing) = (true, isOnline)
            // A pending mark as read may take effect before the user's marking as unread.
            guard !isLeaving || newest > leftUnread else { return }
            // Messages that arrived while the client was offline keep the line, as do those left unread above it.
            if leftUnread > 0, wasFollowing { remove() }
            (leftUnread, isLeaving) = (0, false)
            return
        }
        if isMovedBack {
            (seq, isSeen, isRead) = (readSeq, false, false)
            // If the user has marked them here, the range is known: more may have arrived before the server has answered.
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

    /// The user marks messages as unread, from a seq up to the newest on the screen.
    mutating func leaveUnread(from seq: Seq, upTo newest: Seq) {
        // The position may not move back for it: the last messages' mark as read may not have been sent yet.
        (self.seq, isSeen, isRead) = (seq.subtractingWithSaturation(1), false, false)
        (leftUnread, isLeaving) = (max(seq, newest), true)
    }

    /// The connection is lost: messages that arrive meanwhile aren't read on arrival.
    mutating func lostConnection(isAtBottom: Bool) {
        isFollowing = false
        if isAtBottom, isRead { remove() }
    }

    /// The user has pressed a key.
    mutating func pressedKey(isInView: Bool) { if isInView, isRead { isSeen = true } }

    /// The user has reached the newest messages, or was there and wants to continue.
    mutating func reachedBottom() { if isSeen { remove() } }

    /// The user has written a message, or goes to another position.
    mutating func remove() { (seq, isSeen) = (nil, false) }
}
