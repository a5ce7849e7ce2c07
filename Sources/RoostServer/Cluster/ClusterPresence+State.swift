import RoostAPI

extension ClusterPresence {
    /// What a node knows about the others, and what they want to know about it.
    struct State {
        var nodes: [NodeID: Int64] = [:]
        /// Nodes that were given up. Those that were alive all the while are heard again, and don't know that their queries are forgotten
        /// here. ``givenUpMax`` bounds them.
        var givenUp: Set<NodeID> = []
        /// Given-up nodes that were heard again since the last tick.
        var heardAgain: Set<NodeID> = []
        /// The nodes that asked about a channel, and until when they get its changes.
        var interested: [ChannelID: [NodeID: Int64]] = [:]
        /// The presence of a channel as other nodes reported it.
        var remote: [ChannelID: [NodeID: Present]] = [:]
        /// The channels that this node asked about, and when it last did.
        var asked: [ChannelID: Int64] = [:]
        /// Those of them that were asked about while they weren't watched here, and haven't been watched since. ``askedMax`` bounds only these.
        var askedUnwatched: Set<ChannelID> = []
        var gathers: [ChannelID: Gather] = [:]
        var changed: Set<ChannelID> = []
        var lastHeartbeat: Int64 = 0
        var lastSentAt: Int64 = 0
    }

    /// Callers that wait for the other nodes' answers.
    struct Gather {
        var missing: Set<NodeID>
        let deadline: Int64
        var waiting: [@Sendable () -> Void]
    }

    /// The users whose presence has begun or ended, over all other nodes.
    struct Changed {
        var watchers: Set<UserID> = []
        var online: Set<UserID> = []
        /// Whether members came online or went offline whom a node doesn't name.
        var hasUnnamed = false
        /// The same for watchers.
        var hasUnnamedWatchers = false

        var isEmpty: Bool { watchers.isEmpty && online.isEmpty && !hasUnnamed && !hasUnnamedWatchers }
    }
}

extension ClusterPresence.State {
    /// Whether the other nodes were asked about a channel, and still report its changes.
    func isKnown(_ channel: ChannelID, at now: Int64) -> Bool {
        asked[channel].map { now - $0 < ClusterPresence.interestMilliseconds } ?? false
    }

    /// Takes a node's current report on a channel.
    ///
    /// - Returns: Who has come or gone according to it, over all other nodes. With a node's first answer, all of its users have come:
    ///   existing watchers don't know of them, for example after a time in which the node couldn't be heard.
    mutating func replace(
        _ present: ClusterPresence.Present, in channel: ChannelID
    ) -> ClusterPresence.Changed {
        let before =
            remote[channel, default: [:]].updateValue(present, forKey: present.node)
            ?? ClusterPresence.Present(node: present.node, online: [], onlineBeyond: 0, watchers: [], watchersBeyond: 0)
        let others = (remote[channel] ?? [:]).filter { $0.key != present.node }.values
        func changed(_ names: KeyPath<ClusterPresence.Present, [UserID]>) -> Set<UserID> {
            guard before[keyPath: names] != present[keyPath: names] else { return [] }
            let elsewhere = others.reduce(into: Set()) { $0.formUnion($1[keyPath: names]) }
            return Set(before[keyPath: names]).symmetricDifference(present[keyPath: names]).subtracting(elsewhere)
        }
        // If a node names only some of very many, the names don't show who came and went.
        func isNamed(_ beyond: KeyPath<ClusterPresence.Present, Int>) -> Bool {
            before[keyPath: beyond] == 0 && present[keyPath: beyond] == 0
        }
        let (hasNames, hasNamesOfWatchers) = (isNamed(\.onlineBeyond), isNamed(\.watchersBeyond))
        let hasUnnamed = before.onlineBeyond + before.online.count != present.onlineBeyond + present.online.count
        // The named watchers are the first by arrival: others among them also mean that some came or went, even if as many came as went.
        let hasUnnamedWatchers =
            before.watchersBeyond + before.watchers.count != present.watchersBeyond + present.watchers.count
            || before.watchers != present.watchers
        return ClusterPresence.Changed(
            watchers: hasNamesOfWatchers ? changed(\.watchers) : [], online: hasNames ? changed(\.online) : [],
            hasUnnamed: !hasNames && hasUnnamed, hasUnnamedWatchers: !hasNamesOfWatchers && hasUnnamedWatchers)
    }

    /// Returns who is no longer present in a channel on any other node once some of the nodes are gone.
    func lost(with nodes: Set<NodeID>) -> [ChannelID: ClusterPresence.Changed] {
        remote.mapValues { present in
            func gone(_ names: KeyPath<ClusterPresence.Present, [UserID]>) -> Set<UserID> {
                var (gone, left): (Set<UserID>, Set<UserID>) = ([], [])
                for (node, present) in present {
                    if nodes.contains(node) {
                        gone.formUnion(present[keyPath: names])
                    } else {
                        left.formUnion(present[keyPath: names])
                    }
                }
                return gone.subtracting(left)
            }
            let lost = present.filter { nodes.contains($0.key) }.values
            return ClusterPresence.Changed(
                watchers: gone(\.watchers), online: gone(\.online), hasUnnamed: lost.contains { $0.onlineBeyond > 0 },
                hasUnnamedWatchers: lost.contains { $0.watchersBeyond > 0 })
        }.filter { !$0.value.isEmpty }
    }

    /// Notes a node's sign of life.
    ///
    /// - Returns: Whether the node wasn't known.
    mutating func heard(from other: NodeID, isNew: Bool, at now: Int64) -> Bool {
        // A node that greets as new asks again by itself.
        if givenUp.remove(other) != nil, !isNew { heardAgain.insert(other) }
        return nodes.updateValue(now, forKey: other) == nil
    }

    /// Removes a silent node. Returns the callers that no longer have to wait.
    mutating func giveUp(_ other: NodeID) -> [@Sendable () -> Void] {
        let ready = forget(other)
        // Nodes that are gone for good stay in the set. A node that is dropped here and returns asks again by itself.
        if givenUp.count >= ClusterPresence.givenUpMax { givenUp = [] }
        givenUp.insert(other)
        return ready
    }

    /// Removes a node. Returns the callers that no longer have to wait.
    mutating func forget(_ other: NodeID) -> [@Sendable () -> Void] {
        nodes[other] = nil
        givenUp.remove(other)
        heardAgain.remove(other)
        for channel in remote.keys { remote[channel]?[other] = nil }
        for channel in interested.keys { interested[channel]?[other] = nil }
        return gathers.keys.flatMap { heard(of: $0, from: other) }
    }

    mutating func heard(of channel: ChannelID, from other: NodeID) -> [@Sendable () -> Void] {
        gathers[channel]?.missing.remove(other)
        guard let gather = gathers[channel], gather.missing.isEmpty else { return [] }
        gathers[channel] = nil
        return gather.waiting
    }
}
