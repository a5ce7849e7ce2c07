import GRDB
import RoostAPI

/// The channels that have delivery reports enabled. No row has this for a type: the server is asked once per connection.
struct ArrivalRules {
    /// Types with one of the two rules off, for their channels whose own policy doesn't set that rule.
    private var (withoutReading, withoutDelivery): (Set<ChannelType>, Set<ChannelType>) = ([], [])
    /// Channels with the reports off, each with its own policy at the time.
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

    /// The server has refused the report, by a rule of the channel or of its type.
    mutating func refused(_ channel: Channel, by rule: String?) {
        switch rule.flatMap(PolicyName.init) {
        case .readEvents where channel.policy?.readEvents == nil: withoutReading.insert(channel.type)
        case .deliveryEvents where channel.policy?.deliveryEvents == nil: withoutDelivery.insert(channel.type)
        default: withoutChannels.updateValue(channel.policy, forKey: channel.channelId)
        }
    }
}

extension SyncDriver {
    /// Reports to the server which messages have arrived and aren't read. What can't be reported now is reported later.
    func report(_ arrivals: [ChannelID: Seq]) async {
        let rules = arrivalRules
        guard let store = try? await files().store,
            let candidates = try? await store.read({ database in
                try database.types(of: arrivals.keys).filter { rules.mayWant($0.type, hasPolicy: $0.hasPolicy) }
            })
        else { return submit(.unreported(arrivals)) }
        var unreported: [ChannelID: Seq] = [:]
        for (id, type, hasPolicy) in candidates {
            // The first refusal applies to all channels of a type, thousands after a first connection: their rows aren't even read.
            guard arrivalRules.mayWant(type, hasPolicy: hasPolicy), let seq = arrivals[id] else { continue }
            let found: ChannelView?
            do {
                found = try await store.read { try $0.channelView(id) }
            } catch {
                unreported[id] = seq
                continue
            }
            guard let view = found, let membership = view.membership, membership.state == .member, membership.readSeq < seq,
                arrivalRules.wants(view.channel)
            else { continue }
            do {
                _ = try await call(MarkDelivered(channel: id, seq: seq))
            } catch let error as RoostError where error.isRetryable {
                unreported[id] = seq
            } catch let error as RoostError where error.code == .featureDisabled {
                arrivalRules.refused(view.channel, by: error.rule)
            } catch {
                // For instance because the membership has ended: there is nothing more to report.
            }
        }
        if !unreported.isEmpty { submit(.unreported(unreported)) }
    }
}

extension MarkDelivered: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .arrival }
}
