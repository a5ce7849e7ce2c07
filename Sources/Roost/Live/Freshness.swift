import RoostAPI

/// Until when what the server has answered was right: it is right at this moment as long as signals have told each change since it was asked.
struct Freshness: Hashable, Sendable {
    /// A question to the server, and what was so when it was asked.
    struct Question {
        fileprivate let time: Timestamp
        fileprivate let isWatched: Bool
        fileprivate let interruptions: Int
    }

    /// Until when the answer was right; nil while it is, and before there is one.
    private(set) var asOf: Timestamp?
    private var isFollowed = false
    private var interruptions = 0

    /// The server is asked.
    ///
    /// - Parameter isWatched: Whether signals tell of changes.
    func ask(at time: Timestamp, isWatched: Bool) -> Question {
        Question(time: time, isWatched: isWatched, interruptions: interruptions)
    }

    /// What the server has answered is shown from now on.
    mutating func answered(_ question: Question, isWatched: Bool) {
        isFollowed = isWatched && question.isWatched && question.interruptions == interruptions
        asOf = isFollowed ? nil : question.time
    }

    /// Signals have told of changes until then, and not of each one since.
    mutating func interrupt(at time: Timestamp) {
        interruptions += 1
        guard isFollowed else { return }
        (isFollowed, asOf) = (false, time)
    }

    /// Nothing is shown any more.
    mutating func forget() { (isFollowed, asOf) = (false, nil) }
}
