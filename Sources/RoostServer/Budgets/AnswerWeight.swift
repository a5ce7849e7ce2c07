import RoostAPI
import RoostCore

/// The weight of a call under way: about the size of its answer, which is what the server has to hold for it.
enum AnswerWeight {
    /// An answer hardly larger than its request: a sent message, a position read to.
    case small
    /// One row that can hold an app's data, or a stored message, or a few. A socket's first ones are eight at a time; after that, as many as
    /// probably fit, 64 at most.
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

    /// - Parameter asked: The bytes of the call.
    func weightBytes(asked: Int, after latest: LatestAnswers, of limits: SocketBudget.Configuration) -> Int {
        let most = limits.underWayBytesMax
        let answer =
            switch self {
            case .small: most / 256
            case .row: latest.rowSizeBytes.map { min(max($0 * 2, most / 64), most) } ?? most / 8
            case .page: latest.pageSizeBytes.map { min(max($0 * 2, most / 8), most) } ?? most
            case .pageOfWrite: most
            }
        return max(asked, answer)
    }
}

/// About how large the largest of a socket's latest answers were, which tells what the next ones will be: calls that follow one another are alike.
struct LatestAnswers {
    /// Nil until one was answered.
    private(set) var rowSizeBytes: Int?
    private(set) var pageSizeBytes: Int?

    /// Notes an answer. What is remembered of a large one fades by a quarter with each that follows.
    mutating func add(_ sizeBytes: Int, of answer: AnswerWeight) {
        switch answer {
        case .row: rowSizeBytes = max(sizeBytes, (rowSizeBytes ?? 0) / 4 * 3)
        case .page: pageSizeBytes = max(sizeBytes, (pageSizeBytes ?? 0) / 4 * 3)
        case .small, .pageOfWrite: break
        }
    }
}
