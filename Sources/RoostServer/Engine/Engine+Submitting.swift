import RoostAPI
import RoostCore
import Synchronization

/// How operations are queued. Some wait until their channels are found, or presence is collected.
extension Engine {
    /// Queues a writing operation. Throws `overloaded` if the queue is full, `unavailable` if the engine is stopping.
    func submit(write job: Job) throws(RoostError) {
        try admit(job)
        guard !presenceTurns.withLock({ $0.mustWait(job) }) else { return }
        if let query = job.traits.channelQuery { return try findChannels(by: query, for: job) }
        guard job.presenceChannel != nil else { return try append(job, to: lanes[job.lane(of: lanes.count)]) }
        prepareAndQueue(job)
    }

    /// Queues a writing operation once its channels are found, which is a read.
    private func findChannels(by query: QueryChannels, for job: Job) throws(RoostError) {
        let finding = job.finding(query, countedIn: settings.memory) { [self] found in
            switch found {
            case .success(let found): queue(found)
            case .failure(let refusal):
                metrics.ran(job.operation, refusal: refusal)
                answer(job, .failure(refusal))
            }
        }
        do {
            try reads.append(finding)
        } catch {
            noteRefusal(of: job, error)
            throw error
        }
    }

    /// Queues a read-only operation, or runs it. Throws as ``submit(write:)`` does.
    ///
    /// - Parameter atOnce: Whether the calling thread, an event loop, may run it if that involves no waiting.
    @discardableResult
    func submit(read job: Job, atOnce: Bool = false) throws(RoostError) -> ReadDispatch {
        try admit(job)
        let dispatch = atOnce ? readWithoutBlocking(job) : .queued
        if dispatch != .ranInline { try submit(toReaders: job) }
        return dispatch
    }

    private func submit(toReaders job: Job) throws(RoostError) {
        if job.traits.isSignal { return try append(job, to: signalQueue) }
        switch job.traits.requiredPresence {
        case .none: try append(job, to: reads)
        case .users(let users): try prepareConnected(job, users)
        case .channel(let channel): collectPresence(of: names(of: channel)) { [self] in queueRead(job) }
        case .watchers(let channel, let count):
            collectPresence(of: names(of: channel)) { [self] in prepareWatchers(job, names(of: channel)[...], upTo: count) }
        }
    }

    /// Queues a read once it is known who is connected elsewhere.
    private func prepareConnected(_ job: Job, _ users: [UserID]) throws(RoostError) {
        let isAsked = delivery.prepareConnected(users) { [self] elsewhere in
            queueRead(job.knowing { $0.connectedElsewhere = elsewhere })
        }
        guard isAsked else { throw tooManyQueries(job) }
    }

    /// Queues a read once the other nodes have named their watchers of the channels, one channel after another.
    private func prepareWatchers(_ job: Job, _ channels: ArraySlice<ChannelID>, upTo count: Int) {
        guard let channel = channels.first else { return queueRead(job) }
        let isAsked = delivery.prepareWatchers(of: channel, upTo: count) { [self] elsewhere in
            let job = job.knowing { $0.watchersElsewhere[channel] = elsewhere }
            prepareWatchers(job, channels.dropFirst(), upTo: count)
        }
        if !isAsked { answer(job, .failure(tooManyQueries(job))) }
    }

    /// Queues a read; a refusal becomes the caller's answer.
    private func queueRead(_ job: Job) {
        do throws(RoostError) {
            try append(job, to: reads)
        } catch {
            answer(job, .failure(error))
        }
    }

    private func tooManyQueries(_ job: Job) -> RoostError {
        let refusal = RoostError(.overloaded, "The server is overloaded.", retryAfterMilliseconds: 500)
        noteRefusal(of: job, refusal)
        return refusal
    }

    /// Throws `rate_limited` if the caller has done this too often.
    private func admit(_ job: Job) throws(RoostError) {
        guard let rate = job.traits.userRate else { return }
        do {
            try signals.admit(job.caller.user, job.operation, at: rate)
        } catch {
            noteRefusal(of: job, error)
            throw error
        }
    }

    private func noteRefusal(of job: Job, _ refusal: RoostError) {
        metrics.refused(job.operation, refusal)
        guard refusal.code == .overloaded else { return }
        metrics.overloaded(.queue)
        security.reached(.queue, user: job.caller.user)
    }

    private func append(_ job: Job, to queue: WorkQueue) throws(RoostError) {
        do {
            try queue.append(job)
        } catch {
            noteRefusal(of: job, error)
            throw error
        }
    }

    /// Queues a writing operation once presence is collected, and then the operations of the same connection and channel that arrived meanwhile.
    private func prepareAndQueue(_ job: Job) {
        guard let channel = job.presenceChannel else { return queue(job) }
        collectPresence(of: names(of: channel)) { [self] in
            queue(job)
            guard let turn = job.turn else { return }
            while let next = presenceTurns.withLock({ $0.next(in: turn) }) {
                guard next.presenceChannel == nil else { return prepareAndQueue(next) }
                queue(next)
            }
        }
    }

    /// Queues an operation; a refusal becomes the caller's answer.
    private func queue(_ job: Job) {
        do throws(RoostError) {
            try append(job, to: lanes[job.lane(of: lanes.count)])
        } catch {
            publish([(job, JobOutcome(result: .failure(error)))])
        }
    }

    /// Returns the names that a channel may have. Only the rule knows which of them is the channel's.
    private func names(of channel: ChannelID) -> [ChannelID] { Scope.channel(channel).channels.sorted() }

    /// Collects the presence of channels, one after another.
    private func collectPresence(of channels: [ChannelID], then run: @escaping @Sendable () -> Void) {
        guard let channel = channels.first else { return run() }
        delivery.preparePresence(of: channel) { [self] in collectPresence(of: Array(channels.dropFirst()), then: run) }
    }
}
