import GRDB
import RoostAPI

/// Which channels want to know what has arrived. No row says it of a type: it is asked once with each connection.
struct ArrivalRules {
    /// Types that have one of the two rules off, for their channels without that rule in a policy of their own.
    private var (withoutReading, withoutDelivery): (Set<ChannelType>, Set<ChannelType>) = ([], [])
    /// Channels that don't want to know, each with the policy of its own that it had.
    private var withoutChannels: [ChannelID: PolicyChanges?] = [:]

    func mayWant(_ type: ChannelType, hasPolicy: Bool) -> Bool {
        hasPolicy || !withoutReading.contains(type) && !withoutDelivery.contains(type)
    }

    func wants(_ channel: Channel) -> Bool {
        if let policy = withoutChannels[channel.channelId], policy == channel.policy { return false }
        guard channel.counters.memberCount <= Limits.largeChannelMembers else { return false }
        return channel.policy?.readEvents ?? !withoutReading.contains(channel.type)
            && channel.policy?.deliveryEvents ?? !withoutDelivery.contains(channel.type)
    }

    /// The server has refused to be told, by a rule of the channel or of its type.
    mutating func refused(_ channel: Channel, by rule: String?) {
        switch rule.flatMap(PolicyName.init) {
        case .readEvents where channel.policy?.readEvents == nil: withoutReading.insert(channel.type)
        case .deliveryEvents where channel.policy?.deliveryEvents == nil: withoutDelivery.insert(channel.type)
        default: withoutChannels.updateValue(channel.policy, forKey: channel.channelId)
        }
    }
}

extension SyncDriver {
    /// Tells the server what has arrived and isn't read. What can't be told now is told again.
    func tell(_ arrivals: [ChannelID: Seq]) async {
        guard let store = try? await files().store else { return }
        let rules = arrivalRules
        let candidates = try? await store.read { database in
            try database.types(of: arrivals.keys).filter { rules.mayWant($0.type, hasPolicy: $0.hasPolicy) }
        }
        var untold: [ChannelID: Seq] = [:]
        for (id, type, hasPolicy) in candidates ?? [] {
            // The first refusal holds for all channels of a type, thousands after a first connection: they aren't even read.
            guard arrivalRules.mayWant(type, hasPolicy: hasPolicy),
                let seq = arrivals[id], let view = try? await store.read({ try $0.channelRow(id)?.view }),
                let membership = view.membership, membership.state == .member, membership.readSeq < seq,
                arrivalRules.wants(view.channel)
            else { continue }
            do {
                _ = try await call(MarkDelivered(channel: id, seq: seq))
            } catch let error as RoostError where error.isRetryable {
                untold[id] = seq
            } catch let error as RoostError where error.code == .featureDisabled {
                arrivalRules.refused(view.channel, by: error.rule)
            } catch {
                // Such as the end of the membership: nobody is to be told any more.
            }
        }
        if !untold.isEmpty { submit(.untold(untold)) }
    }
}

extension MarkDelivered: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .arrival }
}
