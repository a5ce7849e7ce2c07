import RoostAPI
import RoostCore

/// The weight of a call under way: about the size of its answer, which is what the server has to hold for it.
enum AnswerWeight {
    /// An answer hardly larger than its request: a sent message, a read position.
    case small
    /// One row that can hold an app's data, a stored message, or a few rows. A socket starts with eight calls at a time; after that, as many as
    /// probably fit, at most 64.
    case row
    /// A page of rows, up to `Limits.pageContentBytes`. A socket's first such call is under way alone; after that, as many as probably fit, at most
    /// eight.
    case page
    /// A page with which a write answers, or one that is queued among the writes. It is under way alone, because a write runs even if its user's
    /// budget is used up.
    case pageOfWrite

    init(of operation: any Handled) { self.init(operation) }

    private init<Operation: Handled>(_ operation: Operation) {
        let answer = Operation.Response.self
        if answer == Message.self {
            // A sent message is hardly larger than its call. A stored message can be a thousand times as large as the call that names it.
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
        let most = limits.inFlightBytesMax
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

/// The approximate size of the largest of a socket's recent answers, which predicts the next ones: consecutive calls are alike.
struct LatestAnswers {
    /// Nil until one was answered.
    private(set) var rowSizeBytes: Int?
    private(set) var pageSizeBytes: Int?

    /// Records an answer. The recorded size decays by a quarter with each smaller answer that follows.
    mutating func add(_ sizeBytes: Int, of answer: AnswerWeight) {
        switch answer {
        case .row: rowSizeBytes = max(sizeBytes, (rowSizeBytes ?? 0) / 4 * 3)
        case .page: pageSizeBytes = max(sizeBytes, (pageSizeBytes ?? 0) / 4 * 3)
        case .small, .pageOfWrite: break
        }
    }
}
