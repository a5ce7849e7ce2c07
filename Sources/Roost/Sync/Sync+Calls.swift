import RoostAPI

/// An operation whose answer updates the cache. Its conformance is in its feature's folder.
protocol CachedOperation: Operation {
    var cacheEffect: Sync.CacheEffect { get }
}

/// An operation whose answer names users, who are cached. The answer is read once, for the cache and for the caller.
protocol UserNaming: CachedOperation {
    /// The summaries of users in an answer.
    static func users(in answer: Response) -> [UserSummary]
}

extension UserNaming {
    var cacheEffect: Sync.CacheEffect { .users(in: Sync.NamingAnswer(to: Self.self)) }
}

extension Sync {
    /// The purpose of a call.
    enum Purpose: Hashable, Sendable {
        /// With whether it may change something that events report without naming their origin.
        case app(CallToken, CacheEffect, mayChange: Bool)
        case resume
        case watch(ChannelID)
        case unwatch
        /// A call that may have begun watches, and whose answer is no longer awaited.
        case watchGivenUp(CacheEffect)
        /// The caller waits for the start; no caller waits for a renewal.
        case startReading(ChannelID, CallToken?)
        case stopReading(ChannelID)
        case send(Int64, of: ChannelID?, isMessage: Bool)
        case history(HistoryPlace)
        case users
        case permissions(ChannelID)
    }

    /// A reply's effect on the cache.
    enum CacheEffect: Hashable, Sendable {
        case nothing
        /// A channel that the user becomes a member of through the call, and that is followed from now on.
        case membership
        /// A channel, whether the user is a member or not.
        case channel
        /// Summaries of users.
        case users(in: NamingAnswer)
        /// Invitations with the summaries of their channels.
        case invitations
        /// The channel of the answer is watched from now on. It may have been requested by another of its names.
        case watch(ChannelID)
        /// A live object watches the channel from now on.
        case hold(Int64)
        /// None: only others are notified.
        case arrival
        /// A channel that was to be watched, and no longer is.
        case watchEnded
        /// Channels that the user may watch are watched from now on, except those that no longer should be.
        case watchAll(except: Set<ChannelID>)

        init(_ operation: any Operation) { self = (operation as? any CachedOperation)?.cacheEffect ?? .nothing }
    }

    mutating func call(_ operation: any Operation, for token: CallToken) {
        if let operation = operation as? UnwatchChannel {
            let isHeld = unwatch(operation.channel)
            // A watch has ended with its connection, and the next connection doesn't renew this one.
            guard isAuthenticated, !isHeld else { return emit(.reply(token, .success(Self.done))) }
        }
        guard isAuthenticated else {
            return emit(.reply(token, .failure(RoostError(.notConnected, "There is no connection to the server."))))
        }
        if let channel = CacheEffect.channelJoined(by: operation) { giveUpLeaving(channel) }
        let effect = CacheEffect(operation)
        send(operation, for: .app(token, effect, mayChange: !type(of: operation).isReadOnly && effect != .arrival))
    }

    /// The answer to a call that is done without the server.
    private static let done = Array(#"{"result":{}}"#.utf8)

    mutating func cancel(_ token: CallToken) {
        for (place, load) in loads where load.waiting.contains(token) {
            // The page is stored when it arrives; only the caller no longer waits for it.
            loads[place]?.waiting.removeAll { $0 == token }
        }
        for channel in readingRetries.keys { readingRetries[channel]?.waiting.removeAll { $0 == token } }
        for (number, purpose) in calls {
            guard case .app(token, _, _) = purpose else { continue }
            calls[number] = nil
            if purpose.mayChange { hasLostCalls = true }
            emit(.cancelTimer(.call(number)))
            giveUpWatching(number, purpose)
        }
        if let early = earlyAnswers.removeValue(forKey: token) { watches.ending.formUnion(early.watched) }
        endUnwantedWatches()
        emit(.reply(token, .failure(RoostError(.notConnected, "The call was cancelled."))))
    }

    /// Whether the answer that a caller waits for is still to come. Otherwise it is being delivered.
    func isAwaitingAnswer(_ token: CallToken) -> Bool {
        let isAsked = calls.values.contains { purpose in
            switch purpose {
            case .app(let waiting, _, _): waiting == token
            case .startReading(_, let waiting): waiting == token
            default: false
            }
        }
        return isAsked || earlyAnswers[token] != nil || loads.values.contains { $0.waiting.contains(token) }
            || readingRetries.values.contains { $0.waiting.contains(token) }
    }

    /// Sends a call and remembers the purpose of its reply. A call that can't be sent is refused here, and the connection continues.
    ///
    /// - Parameter ahead: Whether it is sent before rows are stored.
    mutating func send(_ operation: any Operation, for purpose: Purpose, key: IdempotencyKey? = nil, ahead: Bool = false) {
        lastCall += 1
        do {
            let frame = try Self.frame(operation, number: lastCall, key)
            guard frame.count <= settings.outgoingSizeBytesMax else {
                // If sent, it would end the connection, and each one that follows.
                return finish(purpose, with: .failure(tooLong(operation, frame.count)))
            }
            calls[lastCall] = purpose
            emit(ahead ? .sendBeforeStoring(frame) : .send(frame))
            emit(.startTimer(.call(lastCall), timeout(of: purpose)))
        } catch {
            let refusal = RoostError(.invalidArgument, "The call can't be written as JSON: \(error)")
            finish(purpose, with: .failure(refusal))
        }
    }

    private func tooLong(_ operation: any Operation, _ sizeBytes: Int) -> RoostError {
        let (name, max) = (type(of: operation).name, settings.outgoingSizeBytesMax)
        return RoostError(
            .limitExceeded, "\(name) has \(sizeBytes) bytes here, and the transport sends at most \(max) at once.",
            limit: Int64(max))
    }

    private static func frame<Call: Operation>(
        _ operation: Call, number: Int64, _ key: IdempotencyKey?
    ) throws -> [UInt8] {
        try JSONWriter.bytes(of: CallFrame(call: number, key: key, with: operation))
    }

    mutating func reply(_ number: Int64, _ error: RoostError?, _ bytes: [UInt8]) {
        // A reply without a caller is late: its call timed out or was cancelled.
        guard let purpose = calls.removeValue(forKey: number) else { return }
        emit(.cancelTimer(.call(number)))
        finish(purpose, with: error.map(Result.failure) ?? .success(bytes))
    }

    mutating func callTimedOut(_ number: Int64) {
        guard let purpose = calls.removeValue(forKey: number) else { return }
        if purpose.mayChange { hasLostCalls = true }
        let timeout = timeout(of: purpose)
        if purpose == .resume { resuming.slowCount = min(resuming.slowCount + 1, 3) }
        giveUpWatching(number, purpose)
        finish(purpose, with: .failure(RoostError(.unavailable, "The server gave no answer within \(timeout).")))
    }

    private func timeout(of purpose: Purpose) -> Duration {
        purpose == .resume ? settings.callTimeout * (1 << resuming.slowCount) : settings.callTimeout
    }

    private mutating func finish(_ purpose: Purpose, with result: Result<[UInt8], RoostError>) {
        switch (purpose, result) {
        case (.app(let token, let effect, _), .success(let bytes)):
            let answer = CachedAnswer(effect, bytes)
            guard !isEarly(answer, effect) else {
                earlyAnswers[token] = EarlyAnswer(effect: effect, answer: answer, bytes: bytes)
                return
            }
            arrived(effect, answer)
            reply(token, bytes, answer)
            endUnwantedWatches()
        case (.app(let token, let effect, _), .failure):
            // A live object that asked again may have been watching already, and the server keeps that watch: it has to be ended.
            if case .hold(let holder) = effect, let channel = watches.holders.removeValue(forKey: holder) {
                watches.ending.insert(channel)
            }
            emit(.reply(token, result))
            endUnwantedWatches()
        case (.watch(let channel), .failure(let error)): watchFailed(channel, error)
        case (.watch(let channel), .success(let bytes)): watchRenewed(channel, bytes)
        case (.unwatch, _): break
        case (.watchGivenUp(let effect), .success(let bytes)): endWatches(thatBegan: effect, with: bytes)
        case (.watchGivenUp, .failure): break
        case (.startReading(let channel, let token), _): readingBegan(channel, result, for: token)
        case (.stopReading(let channel), _): readingEnded(channel, result)
        case (.resume, .success(let bytes)): resumed(bytes)
        case (.resume, .failure(let error)): resumeFailed(error)
        case (.send(let id, let channel, _), _): sendFinished(id, of: channel, result)
        case (.history(let place), _): pageArrived(at: place, result)
        case (.users, _): usersArrived(result)
        case (.permissions(let channel), _): permissionsArrived(of: channel, result)
        }
    }

    // MARK: Answers before missed events

    /// An answer with a channel that can't be followed as it says until missed events have arrived: the streams belong to one moment.
    struct EarlyAnswer: Sendable {
        var effect: CacheEffect
        var answer: CachedAnswer
        var bytes: [UInt8]

        /// The channels that the app watches from the answer on, by id.
        var watched: Set<ChannelID> {
            switch (answer, effect) {
            case (.watched(let state), .watch): [state.channel.channelId]
            case (.channels(let page, let ended), _):
                Set(page.items.filter { $0.isWatched(except: ended) }.map(\.channel.channelId))
            default: []
            }
        }

        /// Leaves out channels that the app no longer wants to watch.
        mutating func endWatches(of channels: [ChannelID]) {
            switch (answer, effect) {
            case (.watched(let state), .watch): if channels.contains(state.channel.channelId) { effect = .watchEnded }
            case (.channels(let page, let ended), _): answer = .channels(page, exceptEnded: ended.union(channels))
            default: break
            }
        }
    }

    /// Whether an answer, while catching up, has the user in a channel that isn't followed yet, or watching one as a former member. The end of a
    /// membership ends earlier watches.
    private func isEarly(_ answer: CachedAnswer, _ effect: CacheEffect) -> Bool {
        guard phase == .catchingUp else { return false }
        switch (answer, effect) {
        case (.channel(let view, _), _):
            return view.membership?.state == .member && ownPosition(in: view.channel.channelId) == nil
        case (.watched(let state), .watch):
            return state.membership?.state != .member && ownPosition(in: state.channel.channelId) != nil
        case (.channels(let page, let ended), _):
            return page.items.contains { view in
                view.isWatched(except: ended) && view.membership?.state != .member && ownPosition(in: view.channel.channelId) != nil
            }
        default: return false
        }
    }

    /// Delivers the answers that waited for missed events: their data is stored before their callers get them.
    mutating func handOverEarlyAnswers() {
        let answers = earlyAnswers.sorted { $0.key < $1.key }
        earlyAnswers = [:]
        for (token, answer) in answers {
            arrived(answer.effect, answer.answer)
            reply(token, answer.bytes, answer.answer)
        }
        if !answers.isEmpty { endUnwantedWatches() }
    }

    /// Answers a caller, who needn't read again what was read for the cache.
    private mutating func reply(_ token: CallToken, _ bytes: [UInt8], _ answer: CachedAnswer) {
        if let value = answer.value { readAnswers[token] = value }
        emit(.reply(token, .success(bytes)))
    }

    // MARK: Effects of answers

    mutating func arrived(_ effect: CacheEffect, _ answer: CachedAnswer) {
        switch answer {
        case .nothing: break
        case .channel(let view, let mayHaveJoined):
            take(view.users ?? [])
            channelArrived(view, mayHaveJoined: mayHaveJoined)
        case .invitations(let page):
            let writes = page.items.flatMap { invitationWrites([$0.invitation], channel: $0.channel) }
            if !writes.isEmpty { emit(.store(writes)) }
            take(page.users ?? [])
        case .users(let users, _): take(users)
        case .channels(let page, let ended):
            recheckUsers(watching: page.items.filter { $0.isWatched(except: ended) }.map { ($0.channel, $0.membership) })
            take(page.users ?? [])
            for view in page.items {
                let id = view.channel.channelId
                let isWatched = view.isWatched(except: ended)
                if isWatched {
                    watched.insert(id)
                    emit(.watching(id))
                }
                channelArrived(view, mayHaveJoined: false)
                let newest = view.lastMessage.map { [$0] } ?? []
                if isWatched { visit(view, Rows(newest), isWhole: view.channel.counters.messageCount == 0) }
            }
        case .unreadableWatch(let channel):
            watched.insert(channel)
            emit(.watching(channel))
        case .watched(let state): watchArrived(state, effect)
        }
    }

    private mutating func watchArrived(_ state: WatchedChannel, _ effect: CacheEffect) {
        let id = state.channel.channelId
        switch effect {
        case .watch: watched.insert(id)
        case .hold(let holder):
            // The live object may be gone.
            if watches.holders[holder] == nil { watches.ending.insert(id) } else { watches.holders[holder] = id }
        default: return arrived(state)
        }
        recheckUsers(watching: [(state.channel, state.membership)])
        arrived(state)
        visit(state)
        emit(.watching(id))
    }

    mutating func arrived(_ state: WatchedChannel) {
        take(
            (state.messages.users ?? []) + (state.users ?? [])
                + state.watchers.values.map(\.summary).sorted { $0.userId < $1.userId })
        channelArrived(
            ChannelView(
                channel: state.channel, membership: state.membership, lastMessage: state.messages.messages.last,
                ownCapabilities: state.ownCapabilities), mayHaveJoined: false)
    }

    /// - Parameter mayHaveJoined: Whether the call may have made the user a member. Any other membership arrives with the streams.
    private mutating func channelArrived(_ view: ChannelView, mayHaveJoined: Bool) {
        let id = view.channel.channelId
        var writes: [StoreWrite] = []
        let isMember = view.membership?.state == .member
        if ownPosition(in: id) != nil {
            // The channel's stream is more recent, except for the permissions: no event reports a timed end, such as that of a silence. An answer
            // from before the latest event has permissions too, and the stored ones are replaced unless they are of a later moment.
            guard isMember else { return }
        } else if let membership = view.membership, isMember {
            if isAuthenticated {
                // While catching up, the channel arrives with the answer to the resume or with a held event, at the moment that fits the other streams.
                guard mayHaveJoined, phase == .online else { return }
                // The user's stream has passed this membership and the channel isn't followed: the membership has ended since, and the answer is late.
                guard membership.userSeq > saved.userCursor else { return emit(.store([.channel(view.channel)])) }
                writes = adopt(view.channel, with: Rows(view.lastMessage.map { [$0] }))
            } else {
                // The connection broke before that. The next one brings it as to a new client; until then it is shown as last seen here.
                writes = [.channel(view.channel)]
            }
            writes.append(.membership(membership))
        } else if !isVisited(id) {
            // A channel that the user isn't a member of is shown as last seen here.
            writes = [.channel(view.channel)]
        } else if !view.ownCapabilities.contains(.historyRead) {
            endVisit(of: id)
        }
        writes.append(
            .capabilities(
                id,
                Capabilities.Own(
                    permissions: view.ownCapabilities, userSeq: view.membership?.userSeq ?? 0, channelSeq: view.channel.counters.seq
                )))
        if let invitation = view.invitation { writes.append(.invitation(invitation)) }
        emit(.store(writes))
    }

    /// Answers every caller of a connection that has ended.
    mutating func failCalls(_ error: RoostError) {
        for (number, purpose) in calls.sorted(by: { $0.key < $1.key }) {
            emit(.cancelTimer(.call(number)))
            switch purpose {
            case .app(let token, _, _): emit(.reply(token, .failure(error)))
            // It starts again with the next connection.
            case .startReading(_, let token?): emit(.reply(token, .success([])))
            case .permissions(let channel): permissionsToRequest.insert(channel)
            default: break
            }
        }
        calls = [:]
        endRetryingReading()
        endRetryingWatches()
        handOverEarlyAnswers()
        hasLostCalls = false
        readBefore = [:]
        failLoads(error)
    }
}

extension ChannelView {
    /// Whether the answer with this view means that the channel is watched.
    func isWatched(except ended: Set<ChannelID>) -> Bool {
        ownCapabilities.contains(.channelWatch) && !ended.contains(channel.channelId)
    }
}

extension Sync.CacheEffect {
    /// The channel that an operation makes the user a member of.
    static func channelJoined(by operation: any Operation) -> ChannelID? {
        switch operation {
        case let operation as JoinChannel: operation.channel
        case let operation as AcceptInvitation: operation.channel
        default: nil
        }
    }
}
