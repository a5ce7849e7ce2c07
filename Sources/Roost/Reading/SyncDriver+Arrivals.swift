import GRDB
import RoostAPI

/// Which channels want to know what has arrived. No row says it of a type: it is asked once with each connection.
struct ArrivalRules {
    /// Types whose channels don't, unless they have a policy of their own.
    private var withoutTypes: Set<ChannelType> = []
    private var withoutChannels: Set<ChannelID> = []

    func mayWant(_ type: ChannelType, hasPolicy: Bool) -> Bool { hasPolicy || !withoutTypes.contains(type) }

    func wants(_ channel: Channel) -> Bool {
        guard !withoutChannels.contains(channel.channelId), channel.counters.memberCount <= Limits.largeChannelMembers else {
            return false
        }
        return channel.policy?.deliveryEvents ?? !withoutTypes.contains(channel.type)
    }

    /// The server has refused to be told.
    mutating func refused(_ channel: Channel) {
        if channel.policy?.deliveryEvents == nil {
            withoutTypes.insert(channel.type)
        } else {
            withoutChannels.insert(channel.channelId)
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
                arrivalRules.refused(view.channel)
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
