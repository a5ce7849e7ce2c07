import Logging
import RoostAPI

extension SyncDriver {
    /// Deletes the cache's oldest messages if it has outgrown its size, some at a time, between two batches of inputs.
    ///
    /// A cache that another chat has open stays as it is: only that chat knows what its lists show.
    func keepCacheSmall() async {
        guard upkeep.isDue(isCalm: inputs.isEmpty), suspended == nil, let store = try? await files().store else { return }
        do {
            if upkeep.trimming == nil { try await lookAtCache(store) }
            while let trimming = upkeep.trimming {
                guard !trimming.isDone, !store.isShared else { return try await endTrimming(store) }
                let firsts = shownMessages.firsts
                let (next, starts) = try await store.read { database in
                    var next = trimming
                    let starts = try next.next(firsts, CacheUpkeep.stepMax, in: database)
                    return (next, starts)
                }
                // A list that has moved to messages chosen here keeps them: others are chosen.
                guard shownMessages.beginTrimming(starts) else { continue }
                upkeep.trimming = next
                guard starts.isEmpty else { return inputs.insert(.trim(starts), at: 0) }
                guard inputs.isEmpty else { return }
            }
        } catch {
            upkeep.ended(usedBytes: .max)
            environment.logger.error("The cache couldn't be trimmed.", metadata: ["error": "\(error)"])
        }
    }

    private func lookAtCache(_ store: Store) async throws {
        let sizeBytesMax = upkeep.sizeBytesMax
        let (usedBytes, channels) = try await store.read { database in
            let usedBytes = try database.usedBytes()
            return (usedBytes, usedBytes > sizeBytesMax ? try database.channelsByOpening() : [])
        }
        upkeep.looked(usedBytes: usedBytes, channels, shown: Set(shownMessages.firsts.keys))
    }

    private func endTrimming(_ store: Store) async throws {
        var usedBytes = try await store.read { try $0.usedBytes() }
        if upkeep.mustPack(usedBytes: usedBytes) {
            try await store.pack()
            usedBytes = try await store.read { try $0.usedBytes() }
        }
        upkeep.ended(usedBytes: usedBytes)
    }
}
