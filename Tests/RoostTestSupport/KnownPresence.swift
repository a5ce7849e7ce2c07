public import RoostAPI
public import RoostCore

/// The same users in every channel.
public struct KnownPresence: Presence {
    public var online: [UserID] = []
    public var watching: [UserID] = []

    public init(online: [UserID] = [], watching: [UserID] = []) {
        self.online = online
        self.watching = watching
    }

    public func onlineMemberCount(of channel: ChannelID) -> Int { online.count }
    public func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool { online.contains(user) }
    public func watcherCount(of channel: ChannelID) -> Int { watching.count }
    public func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere: [UserID]?) -> [UserID] {
        Array(watching.dropFirst(offset).prefix(limit))
    }
    public func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool { watching.contains(user) }
    public func isConnected(_ user: UserID) -> Bool { online.contains(user) }
}
