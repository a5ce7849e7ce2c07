import RoostAPI
import RoostCore

/// What the engine does by itself, for nobody's call.
extension Engine {
    /// Sends signals to those who may have them by now. Where the rows of a channel can't be understood, its signals are dropped, and no others.
    ///
    /// - Parameter failed: Called if the server has too much to do, or can't read now who that is.
    static func send(_ signals: [Signal], through queue: WorkQueue, failed: @escaping @Sendable ([Signal]) -> Void = { _ in }) {
        let job = Job(
            caller: .server,
            run: { context in
                for signal in signals { try context.tell(signal) }
                return []
            },
            destination: .waiting { result in
                guard case .failure(let refusal) = result else { return }
                // What can't be understood now can't be later.
                guard refusal.code == .internalError else { return failed(signals) }
                guard signals.count > 1 else { return }
                for signal in signals { send([signal], through: queue, failed: failed) }
            })
        do { try queue.append(job) } catch { failed(signals) }
    }

    /// Tells all nodes what is shown of users by now, in the channels where they are seen: of as many users as have some channels together. A user whose
    /// rows can't be understood is passed over, and no others.
    ///
    /// - Parameter done: Called with the number of users, from the first on, of whom nothing is left to tell: 0 if the server has too much to do, or can't
    ///   read now.
    static func findViewers(
        of users: [UserID], through queue: WorkQueue, done: @escaping @Sendable (_ count: Int) -> Void
    ) {
        let job = Job(
            caller: .server, isForAllNodes: true,
            run: { context in
                var (count, channels) = (UInt8(0), 0)
                for user in users where channels < viewedChannelsMax && count < UInt8.max {
                    channels += try context.tellProfile(of: user)
                    count += 1
                }
                return [count]
            },
            destination: .waiting { result in
                switch result {
                case .success(let answer): done(Int(answer.first ?? 0))
                // What can't be understood now can't be later.
                case .failure(let refusal) where refusal.code == .internalError:
                    guard users.count > 1 else { return done(users.count) }
                    findViewers(ofEach: users[...], through: queue, done: done)
                case .failure: done(0)
                }
            })
        do { try queue.append(job) } catch { done(0) }
    }

    /// The same with a job for each user, one after another, up to the first that the server has no time for.
    private static func findViewers(
        ofEach users: ArraySlice<UserID>, through queue: WorkQueue, done: @escaping @Sendable (_ count: Int) -> Void
    ) {
        guard let user = users.first else { return done(0) }
        findViewers(of: [user], through: queue) { count in
            guard count > 0 else { return done(0) }
            findViewers(ofEach: users.dropFirst(), through: queue) { done(count + $0) }
        }
    }

    /// Stores when users were online, by ``ActivityDesk/now``. While the server has too much to do, or no database, that waits.
    static func store(_ activity: [UserID: Int64], through lane: WorkQueue, failed: @escaping @Sendable () -> Void) {
        let job = Job(
            caller: .server,
            run: { context in
                let now = ActivityDesk.now
                try context.transaction.recordActivity(
                    activity.mapValues { Timestamp(milliseconds: context.now.milliseconds - max(0, now - $0)) })
                return []
            }, destination: .waiting { if case .failure(let refusal) = $0, refusal.isRetryable { failed() } })
        do { try lane.append(job) } catch { failed() }
    }

    /// Has it checked who may still watch and read, on this node, where the definition of a type or a role has changed. Each channel takes its turn among its
    /// commits, so that nothing older is told after what is newer. Where a lane has too much to do, the channel's next event checks it.
    static func checkReaders(on hub: Hub, through lanes: [WorkQueue]) {
        hub.findFollowed { channels in
            for channel in channels.sorted() {
                let job = Job(
                    caller: .server, scope: .channel(channel),
                    run: { context in
                        try context.tellReaders(of: channel)
                        return []
                    }, destination: .waiting { _ in })
                try? lanes[job.lane(of: lanes.count)].append(job)
            }
        }
    }

    /// In how many channels users are told of at once, before others of them wait for the next time. On a bus, each is a message.
    private static let viewedChannelsMax = 2000
}
