import RoostAPI

/// Until when the server's answer was right: it is right now as long as signals have reported each change since the request.
struct Freshness: Hashable, Sendable {
    /// A request to the server, and the state when it was made.
    struct Request {
        fileprivate let time: Timestamp
        fileprivate let isWatched: Bool
        fileprivate let interruptions: Int
    }

    /// Until when the answer was right; nil while it still is, and before there is one.
    private(set) var asOf: Timestamp?
    private var isFollowed = false
    private var interruptions = 0

    /// Records a request to the server.
    ///
    /// - Parameter isWatched: Whether signals report changes.
    func ask(at time: Timestamp, isWatched: Bool) -> Request {
        Request(time: time, isWatched: isWatched, interruptions: interruptions)
    }

    /// Records that the server's answer is shown from now on.
    mutating func answered(_ request: Request, isWatched: Bool) {
        isFollowed = isWatched && request.isWatched && request.interruptions == interruptions
        asOf = isFollowed ? nil : request.time
    }

    /// Records that signals have reported every change up to a time, but not every change since.
    mutating func interrupt(at time: Timestamp) {
        interruptions += 1
        guard isFollowed else { return }
        (isFollowed, asOf) = (false, time)
    }

    /// Records that nothing is shown any longer.
    mutating func forget() { (isFollowed, asOf) = (false, nil) }
}
