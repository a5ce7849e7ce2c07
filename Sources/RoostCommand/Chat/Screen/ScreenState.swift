import Foundation
import Roost
import RoostAPI

/// Several lines of output.
struct Panel: Hashable {
    var lines: [String] = []
    /// The number of lines above the first one shown.
    var scroll = 0

    init(_ lines: [String] = []) { self.lines = lines }
}

/// Everything shown on the screen of a chat. ``ScreenLayout`` draws it.
struct ScreenState {
    struct Row: Hashable, Identifiable {
        var id: MessageItem.ID
        var seq: Seq?
        var name: String
        /// Safe, with marks around its mentions (``MentionMarks``).
        var text: String
        var date: Date
        var state: MessageItem.State
        /// The state of the user's pending edit or deletion of it; nil if there is none.
        var change: MessageItem.State?
        var isMine: Bool
        var isEdited: Bool
        var isDeleted: Bool
        /// The kind of message, unless it is a user's text.
        var sort: String?
        /// Users that it names but doesn't mention.
        var unmentioned: [String] = []
        /// The readers, for the user's newest message.
        var readers: [String] = []
        /// Whether it mentions the user, by name or with the channel, without a mark in the text.
        var isForUser = false
    }

    var channel: ChannelID
    var displayName: String?
    var memberCount: Int?
    var onlineCount: Int?
    /// The names of others typing in it.
    var typing: [String] = []
    /// Whether there are more of them.
    var moreType = false
    /// Other channels with unread messages.
    var unreadElsewhere: [(name: String, count: Int)] = []

    /// Whether the user is a former member.
    var hasLeft = false
    var rows: [Row] = []
    var hasOlder = false
    /// Whether the channel has messages after the last row.
    var hasNewer = false
    /// The seq up to which messages were read when reading stopped: newer ones are below the marker. See ``UnreadMarker``.
    var marker: Seq?
    /// Lines between the bottom of the scrollback and that of the screen; 0 follows new messages.
    var scroll = 0

    var status = ConnectionStatus.offline
    /// Whether unsent messages are lost with the chat.
    var isInMemory = false
    /// One line about the result of the last command. It expires after a while, since it only applies to that moment.
    var notice: String? { didSet { noticeSeconds = 0 } }
    private var noticeSeconds = 0
    private static let noticeSecondsMax = 20
    /// What was shown about a missing connection: it is outdated once there is a connection again.
    private var outage: [String] = []
    /// The output of a command, shown below the messages until the next key that doesn't scroll it.
    var panel = Panel()
    var editor = LineEditor()

    init(channel: ChannelID) { self.channel = channel }

    var isAtBottom: Bool { scroll == 0 && !hasNewer }

    /// The user's messages that the server doesn't have yet.
    var pendingCount: Int { rows.count { $0.state == .pending } }

    /// Shows the result of a command: in the status line if there is room, otherwise below the messages until the next key.
    mutating func showResult(_ lines: [String], width: Int) {
        if let line = lines.first, lines.count == 1, StatusLine.hasRoom(for: line, self, now: .now, width: width) {
            notice = line
        } else {
            panel = Panel(lines)
        }
    }

    /// Shows what failed for lack of a connection.
    mutating func showOutage(_ line: String, width: Int) {
        outage = [line]
        showResult(outage, width: width)
    }

    /// There is a connection again.
    mutating func outageEnded() {
        if notice.map({ [$0] }) == outage { notice = nil }
        if panel.lines == outage { panel = Panel() }
    }

    /// Removes a line that is no longer true.
    mutating func takeBack(_ line: String) {
        if notice == line { notice = nil }
        if panel.lines == [line] { panel = Panel() }
    }

    /// A second has passed.
    mutating func tick() {
        guard notice != nil else { return }
        noticeSeconds += 1
        if noticeSeconds >= Self.noticeSecondsMax { notice = nil }
    }

    /// Returns the screen of another channel, with the same input and connection state.
    func moved(to channel: ChannelID) -> ScreenState {
        var state = ScreenState(channel: channel)
        (state.status, state.editor, state.isInMemory) = (status, editor, isInMemory)
        return state
    }

    /// Scrolls until a row is in the middle of the screen, or as near to it as the rows after it allow.
    mutating func scroll(to index: Int, width: Int, height: Int) {
        let below = ScreenLayout(width: width).block(of: Array(rows[(index + 1)...]), marker: marker).count
        scroll = max(0, below - height / 2)
    }

    /// Shows the rows of a changed list. A user who has scrolled up still sees the same lines.
    ///
    /// - Parameter keepsPlace: Whether the view stays in place, unless the newest messages are in view.
    mutating func show(_ new: [Row], keepsPlace: Bool = true, width: Int) {
        if keepsPlace, !isAtBottom, let last = rows.last?.id, let index = new.lastIndex(where: { $0.id == last }),
            index < new.count - 1
        {
            let layout = ScreenLayout(width: width)
            let upToLast = Array(new[...index])
            scroll += layout.block(of: new, marker: marker).count - layout.block(of: upToLast, marker: marker).count
        }
        rows = new
    }
}
