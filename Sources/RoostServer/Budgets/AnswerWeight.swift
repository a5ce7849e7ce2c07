import RoostAPI
import RoostCore

/// The weight of a call under way: about the size of its answer, which is what the server has to hold for it.
enum AnswerWeight {
    /// An answer hardly larger than its request: a sent message, a position read to.
    case small
    /// One row that can hold an app's data, or a stored message, or a few.
    case row
    /// A page of rows, up to `Limits.pageContentBytes`. The first one of a socket is under way alone; after that, as many as probably fit,
    /// eight at most.
    case page
    /// A page with which a write answers, or one that takes its turn among them. It is under way alone: a write runs while the budget of its user is used up, too.
    case pageOfWrite

    init(of operation: any Handled) { self.init(operation) }

    private init<Operation: Handled>(_ operation: Operation) {
        let answer = Operation.Response.self
        if answer == Message.self {
            // What is sent is hardly larger than its call. A stored message can be a thousand times as large as the call that names it.
            self = operation is SendMessage ? .small : .row
        } else if answer == Done.self || answer == UnreadCount.self || answer == TotalUnread.self {
            self = .small
        } else if answer == User.self || answer == Preferences.self || answer == Membership.self {
            self = .row
        } else if Operation.isReadOnly {
            self = .page
        } else if answer == WatchedChannel.self || answer == MessageResults.self || answer == Page<ChannelView>.self {
            self = .pageOfWrite
        } else {
            self = .row
        }
    }

    /// - Parameters:
    ///   - asked: The bytes of the call.
    ///   - pageSizeBytes: The size of the largest of the socket's latest pages; nil if there was none.
    func weightBytes(asked: Int, pageSizeBytes: Int?, of limits: SocketBudget.Configuration) -> Int {
        let pageBytes = pageSizeBytes.map { max($0 * 2, limits.underWayBytesMax / 8) } ?? limits.underWayBytesMax
        return switch self {
        case .small: max(asked, limits.underWayBytesMax / 256)
        case .row: max(asked, limits.underWayBytesMax / 8)
        case .page: max(asked, min(pageBytes, limits.underWayBytesMax))
        case .pageOfWrite: max(asked, limits.underWayBytesMax)
        }
    }
}
