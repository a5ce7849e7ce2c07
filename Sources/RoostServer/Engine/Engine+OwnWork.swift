import RoostAPI
import RoostCore

/// The work that the engine does without a call.
extension Engine {
    /// Sends signals to their current audience. If the rows of a channel can't be decoded, only its signals are dropped.
    ///
    /// - Parameter failed: Called if the server is overloaded, or can't read the audience now.
    static func send(_ signals: [Signal], through queue: WorkQueue, failed: @escaping @Sendable ([Signal]) -> Void = { _ in }) {
        let job = Job(
            .init(isReadOnly: true), caller: .server,
            run: { context in
                for signal in signals { try context.notify(signal) }
                return []
            },
            destination: .waiting { result in
                guard case .failure(let refusal) = result else { return }
                // Rows that can't be decoded now can't be decoded later either.
                guard refusal.code == .internalError else { return failed(signals) }
                guard signals.count > 1 else { return }
                for signal in signals { send([signal], through: queue, failed: failed) }
            })
        do { try queue.append(job) } catch { failed(signals) }
    }

    /// Sends the current names and pictures of users to all nodes, for the channels where they are seen. One run takes users until they have some
    /// number of channels together. Only a user whose rows can't be decoded is skipped.
    ///
    /// - Parameter done: Called with the number of users, from the first on, who are done: 0 if the server is overloaded, or can't read now.
    static func findViewers(
        of users: [UserID], through queue: WorkQueue, done: @escaping @Sendable (_ count: Int) -> Void
    ) {
        let job = Job(
            .init(isReadOnly: true), caller: .server, isForAllNodes: true,
            run: { context in
                var (count, channels) = (UInt8(0), 0)
                for user in users where channels < viewedChannelsMax && count < UInt8.max {
                    channels += try context.reportProfile(of: user)
                    count += 1
                }
                return [count]
            },
            destination: .waiting { result in
                switch result {
                case .success(let answer): done(Int(answer.first ?? 0))
                // Rows that can't be decoded now can't be decoded later either.
                case .failure(let refusal) where refusal.code == .internalError:
                    guard users.count > 1 else { return done(users.count) }
                    findViewers(ofEach: users[...], through: queue, done: done)
                case .failure: done(0)
                }
            })
        do { try queue.append(job) } catch { done(0) }
    }

    /// The same with one job per user, one after another, up to the first one that the server has no capacity for.
    private static func findViewers(
        ofEach users: ArraySlice<UserID>, through queue: WorkQueue, done: @escaping @Sendable (_ count: Int) -> Void
    ) {
        guard let user = users.first else { return done(0) }
        findViewers(of: [user], through: queue) { count in
            guard count > 0 else { return done(0) }
            findViewers(ofEach: users.dropFirst(), through: queue) { done(count + $0) }
        }
    }

    /// Stores when users were online, by ``MonotonicClock``. It is postponed while the server is overloaded or has no database.
    static func store(_ activity: [UserID: Int64], through lane: WorkQueue, failed: @escaping @Sendable () -> Void) {
        let job = Job(
            caller: .server,
            run: { context in
                let now = MonotonicClock.milliseconds
                try context.transaction.recordActivity(
                    activity.mapValues { Timestamp(milliseconds: context.now.milliseconds - max(0, now - $0)) }, now: context.now)
                return []
            }, destination: .waiting { if case .failure(let refusal) = $0, refusal.isRetryable { failed() } })
        do { try lane.append(job) } catch { failed() }
    }

    /// Checks who may still watch and read on this node after the definition of a type or a role has changed. Each channel is checked in the order
    /// of its commits, so nothing outdated is sent after something newer. If a lane is overloaded, the channel's next event triggers the check.
    static func checkReaders(on hub: Hub, through lanes: [WorkQueue]) {
        hub.findFollowed { channels in
            for channel in channels.sorted() {
                let job = Job(
                    .init(scope: .channel(channel)), caller: .server,
                    run: { context in
                        try context.reportReaders(of: channel)
                        return []
                    }, destination: .waiting { _ in })
                try? lanes[job.lane(of: lanes.count)].append(job)
            }
        }
    }

    /// The number of channels after which one run takes no further users; these are left for the next run. On a bus, each channel is a message.
    private static let viewedChannelsMax = 2000
}
