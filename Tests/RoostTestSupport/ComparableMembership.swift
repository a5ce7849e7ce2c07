public import RoostAPI

extension Membership {
    /// The membership without the moment at which it was told, which differs between two clients that know the same.
    public var comparable: Membership {
        var membership = self
        membership.channelSeq = 0
        return membership
    }
}
