public import RoostAPI

extension Membership {
    /// The membership without the seq at which it was valid, which differs between two clients with the same state.
    public var comparable: Membership {
        var membership = self
        membership.channelSeq = 0
        return membership
    }
}
