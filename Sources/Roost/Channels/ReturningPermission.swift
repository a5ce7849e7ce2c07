import RoostAPI

/// Knows when the server is to be asked whether a permission is back that a silence or a mute took until some time.
///
/// This device's clock may be ahead of the server's, where the time hasn't come yet: it is asked again, ever later. Another rule may have taken the permission
/// too, so that it isn't asked for ever: with all pauses, for an hour.
struct ReturningPermission {
    /// How often the server is asked after one end.
    static let questionsMax = 13

    private var end = Timestamp(milliseconds: 0)
    /// How often it was asked since that end, and the permission wasn't back.
    private var count = 0

    func isToBeAsked(since end: Timestamp) -> Bool { end > self.end || end == self.end && count < Self.questionsMax }

    /// Takes note of an answer.
    ///
    /// - Returns: How long to wait before the next question; nil if there is none.
    mutating func pause(hasReturned: Bool, since end: Timestamp) -> Duration? {
        if end > self.end { (self.end, count) = (end, 0) }
        guard !hasReturned else {
            count = Self.questionsMax
            return nil
        }
        count += 1
        return count < Self.questionsMax ? .seconds(1 << (count - 1)) : nil
    }
}
