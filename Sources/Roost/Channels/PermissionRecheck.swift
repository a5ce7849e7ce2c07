import RoostAPI

/// Decides when to ask the server whether a permission has returned that a silence or a mute had taken until some time.
///
/// This device's clock may be ahead of the server's, where the time hasn't come yet: the server is asked again at growing intervals. Another rule may
/// have taken the permission too, so the requests stop after an hour, all pauses included.
struct PermissionRecheck {
    /// How many times the server is asked after one end.
    static let requestsMax = 13

    private var end = Timestamp(milliseconds: 0)
    /// How many times it was asked since that end without the permission being back.
    private var count = 0

    func shouldAsk(since end: Timestamp) -> Bool { end > self.end || end == self.end && count < Self.requestsMax }

    /// Records an answer.
    ///
    /// - Returns: How long to wait before asking again; nil if not at all.
    mutating func pause(hasReturned: Bool, since end: Timestamp) -> Duration? {
        if end > self.end { (self.end, count) = (end, 0) }
        guard !hasReturned else {
            count = Self.requestsMax
            return nil
        }
        count += 1
        return count < Self.requestsMax ? .seconds(1 << (count - 1)) : nil
    }
}
