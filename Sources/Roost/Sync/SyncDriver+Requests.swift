import Logging
import RoostAPI

/// The app's requests.
extension SyncDriver {
    /// Connects, and returns once everything that was missed has arrived.
    ///
    /// - Parameter timeout: How long to wait for that; nil for no limit. The client keeps connecting afterwards.
    func connect(timeout: Duration? = nil) async throws {
        let (token, stops) = (nextToken(), stopCount)
        noteStart(since: stops)
        let clock = environment.clock
        // Opening the files takes time too.
        let alarm = timeout.map { timeout in
            Task {
                try await clock.sleep(for: timeout)
                giveUpConnecting(token, after: timeout)
            }
        }
        defer { alarm?.cancel() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                openingConnections[token] = continuation
                // It continues even if the caller no longer waits.
                Task { await beginConnecting(token, since: stops) }
                // The task may have been cancelled before there was a continuation to resume. The same applies below.
                if Task.isCancelled { stopWaiting(for: token) }
            }
        } onCancel: {
            Task { await self.stopWaiting(for: token) }
        }
    }

    /// Opens the files, and makes the machine connect.
    private func beginConnecting(_ token: CallToken, since stops: Int) async {
        var isSubmitted = false
        defer { if !isSubmitted { giveUpStarting() } }
        do {
            guard try await prepareToConnect(since: stops) else { throw disconnectedMeanwhile }
            // A stop that was requested before would take this for connected, or end it.
            while pendingStops > 0 { await rest() }
            try await requireSession()
            // The app may have disconnected again while this waited.
            guard stops == stopCount else { throw disconnectedMeanwhile }
        } catch {
            takeWaiting(for: token)?.resume(throwing: error)
            return
        }
        let waiting = takeWaiting(for: token)
        guard statuses.current != .online else {
            waiting?.resume()
            return
        }
        connecting[token] = waiting
        submit(.start)
        isSubmitted = true
    }

    private var disconnectedMeanwhile: RoostError { RoostError(.notConnected, "\(disconnected) while it began to connect.") }

    private func takeWaiting(for token: CallToken) -> CheckedContinuation<Void, any Error>? {
        openingConnections.removeValue(forKey: token) ?? connecting.removeValue(forKey: token)
    }

    /// Starts connecting, unless the app has disconnected since.
    ///
    /// - Parameter stops: The value of ``stopCount`` when the app asked to connect.
    func start(since stops: Int) async throws {
        noteStart(since: stops)
        var isSubmitted = false
        defer { if !isSubmitted { giveUpStarting() } }
        guard try await prepareToConnect(since: stops) else { return }
        isSubmitted = true
        await post(.start)
    }

    private func noteStart(since stops: Int) {
        pendingStarts += 1
        stopCountAtStart = max(stopCountAtStart ?? stops, stops)
    }

    private func giveUpStarting() {
        pendingStarts -= 1
        releaseFilesSoon()
    }

    /// Makes the machine check at once whether there is a connection.
    func nudge() {
        if machine != nil { submit(.nudge) }
    }

    /// Ends the connection, and returns once it has ended and no shared files are held in the background.
    func stop() async {
        await endConnection()
        await releaseFilesInBackground()
    }

    /// Ends the connection, and returns once it has ended.
    func endConnection() async {
        noteStop()
        // The machine doesn't know of files that couldn't be opened or taken back.
        if case .failed = statuses.current { statuses.send(.offline) }
        if machine == nil {
            statuses.send(.offline)
        } else {
            pendingStops += 1
            await post(.stop)
            // Another caller may be handling it.
            while pendingStops > 0 { await rest() }
        }
    }

    /// The chat is gone: ends the connection, and requests to the app.
    func abandon() async {
        tokenFetch?.cancel()
        await stop()
    }

    /// Opens the files and checks the address. An error of either becomes the status, until the app tries again.
    ///
    /// - Returns: Whether to connect still: opening takes time, and the app may have disconnected meanwhile.
    private func prepareToConnect(since stops: Int) async throws -> Bool {
        do {
            try environment.transport.validate(environment.url)
            try takeFilesBack()
            let files = try await prepare()
            // Another chat of this process may have sent or discarded pending operations since.
            if files.isShared, machine?.phase == .idle { isReopened = true }
        } catch let error as RoostError {
            statuses.send(.failed(error))
            throw error
        }
        return stops == stopCount
    }

    private func giveUpConnecting(_ token: CallToken, after timeout: Duration) {
        // While another attempt is in progress, the reason is that of the previous one.
        let last = statuses.changes(since: 0).values.suffix(2)
        let reason = last.compactMap { if case .waiting(_, let reason) = $0 { reason } else { nil } }.last
        let message = "There was no connection within \(timeout)\(reason.map { ": \($0)" } ?? "")."
        takeWaiting(for: token)?.resume(throwing: RoostError(.notConnected, message))
    }

    /// Calls an operation that is within its limits.
    func call(_ operation: any RoostAPI.Operation, isolation: isolated (any Actor)? = #isolation) async throws -> CallAnswer {
        let turn = order.take()
        return try await answer(turn) { .call($0, operation) }
    }

    /// Watches a channel until the holder is released.
    func hold(_ channel: ChannelID, by holder: Int64, isolation: isolated (any Actor)? = #isolation) async throws -> CallAnswer {
        try await answer(order.take()) { .hold($0, channel, by: holder) }
    }

    /// Adds a page to a channel's cached messages.
    func load(_ load: MessageLoad, in channel: ChannelID, limit: Int) async throws {
        _ = try await answer(order.take()) { .loadMessages($0, channel, load, limit: limit) }
    }

    /// Starts reading a channel.
    ///
    /// - Throws: The `RoostError` with which the server refuses it. Without a connection it isn't asked.
    func startReading(_ channel: ChannelID, isolation: isolated (any Actor)? = #isolation) async throws {
        try await startReading(channel, order.take())
    }

    private func startReading(_ channel: ChannelID, _ turn: CallOrder.Turn) async throws {
        // Reading that starts and ends with a screen is reported even if the screen is gone before its turn. Cancelling only ends the wait.
        await turn.waitIgnoringCancellation()
        _ = try await answer(turn) { .startReading($0, channel) }
    }

    func stopReading(_ channel: ChannelID, isolation: isolated (any Actor)? = #isolation) async throws {
        try await stopReading(channel, order.take())
    }

    private func stopReading(_ channel: ChannelID, _ turn: CallOrder.Turn) async throws {
        await turn.waitIgnoringCancellation()
        try await whileWriting {
            let readSeq = await serverReadSeq(of: channel)
            _ = try await answer(turn, isKept: true) {
                .stopReading($0, channel, id: .random(in: 1...Int64.max), at: self.environment.now(), serverReadSeq: readSeq)
            }
        }
    }

    /// Changes an operation in the outbox.
    func request(_ input: Sync.Input) async {
        await whileWriting {
            _ = try? await prepare()
            await post(input)
        }
    }

    /// Makes the machine handle an input, and returns its answer.
    ///
    /// - Parameter isKept: Whether it may be written to the outbox. A caller that gives that up waits until it is.
    private func answer(
        _ turn: CallOrder.Turn, isKept: Bool = false, _ input: @Sendable (CallToken) -> Sync.Input
    ) async throws -> CallAnswer {
        do {
            try await turn.comes()
            _ = try await prepare()
        } catch {
            turn.pass()
            throw error
        }
        let token = nextToken()
        let input = input(token)
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    ask(input, for: token, continuation)
                    turn.pass()
                    if Task.isCancelled { giveUp(token, isKept: isKept) }
                }
            } onCancel: {
                Task { await self.giveUp(token, isKept: isKept) }
            }
        } catch {
            try Task.checkCancellation()
            throw error
        }
    }

    /// Ends the wait for an answer, and notifies the machine. The caller returns before that, unless its answer has arrived, which it gets once the
    /// answer's data is written: the machine may be writing earlier data, which can take seconds if another process has locked the cache.
    private func giveUp(_ token: CallToken, isKept: Bool) {
        let isQueued = inputs.contains { $0.caller == token }
        // What the machine has taken in belongs to the caller, such as a watch that has begun: they get the answer.
        guard !isKept, isQueued || machine?.isAwaitingAnswer(token) == true else { return submit(.cancel(token)) }
        replies.removeValue(forKey: token)?.resume(throwing: CancellationError())
        guard !isQueued else { return submit(.cancel(token)) }
        // Before an answer that has arrived and wasn't handled: nothing else would end the watch that it begins.
        inputs.insert(.cancel(token), at: 0)
        Task { await drain() }
    }

    /// Ends the wait for an immediate request to the server, but not for an operation that is kept: only the machine knows which it is.
    private func giveUpAsking(_ token: CallToken) {
        guard machine?.isAwaitingAnswer(token) == true else { return submit(.cancelAsking(token)) }
        giveUp(token, isKept: false)
    }

    /// Gives the machine an input whose answer resumes a caller: at once if the chat has ended, because nothing answers then.
    func ask(_ input: Sync.Input, for token: CallToken, _ continuation: CheckedContinuation<CallAnswer, any Error>) {
        guard !hasEnded else { return continuation.resume(throwing: Self.loggedOut) }
        replies[token] = continuation
        submit(input)
    }

    /// Adds an operation to the outbox, and returns when it is on disk and shown. Operations are sent in the order of these calls.
    ///
    /// - Throws: `RoostError` with the code of a limit, which no server would accept: the operation would stay in the outbox as refused;
    ///   `storage_failed`, `storage_in_use` or `storage_gone` if it can't be written; `not_found` for a change of a pending message that doesn't
    ///   exist, and for one of an operation that another chat of the same files has meanwhile sent or discarded. To conceal a channel that isn't
    ///   followed, the server is asked at once, and nothing is kept: `not_connected` without a connection, and if it is lost before the answer;
    ///   `unavailable` if there is no answer in time; the server's refusal; and `CancellationError`.
    func enqueue(_ operation: OutboxOperation, isolation: isolated (any Actor)? = #isolation) async throws {
        try operation.operation.validate()
        try await enqueue(operation, order.take())
    }

    /// Adds a message to the outbox, and removes the channel's draft if that is what was sent. What the user writes after this call stays.
    func enqueue(sending message: SendMessage, isolation: isolated (any Actor)? = #isolation) async throws {
        try await enqueue(sending: message, order.take(), clearing: order.take())
    }

    private func enqueue(sending message: SendMessage, _ turn: CallOrder.Turn, clearing next: CallOrder.Turn) async throws {
        // A caller that waits for the message's confirmation holds the turn that long: later calls must not wait for that.
        defer { next.pass() }
        try await enqueue(.send(message), turn)
        await next.waitIgnoringCancellation()
        let channel = message.channel
        var draft = machine?.queuedDraft(in: channel)?.text
        // The sending task may be cancelled by now, and a read in it would be too.
        if draft == nil { draft = try? await Task { try await files().store.read { try $0.draft(of: channel)?.text } }.value }
        // The message is pending, whether the draft can be removed or not.
        if draft == message.text, !message.text.isEmpty { try? await enqueue(.draft(SetDraft(channel: channel, text: "")), next) }
    }

    func enqueue(_ operation: OutboxOperation, _ turn: CallOrder.Turn) async throws {
        // What the user sends is kept even if its screen is gone before its turn.
        await turn.waitIgnoringCancellation()
        try await whileWriting { try await keep(operation, turn) }
    }

    private func keep(_ operation: OutboxOperation, _ turn: CallOrder.Turn) async throws {
        defer { turn.pass() }
        _ = try await prepare()
        let readSeq = await serverReadSeq(for: operation)
        let mayBeDeleted = await serverMayHaveDeleted(messageOf: operation)
        // The user may have logged out meanwhile.
        try await requireSession()
        let token = nextToken()
        do {
            // It is kept whether the caller waits or not. Only a request sent to the server instead can be given up.
            _ = try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<CallAnswer, any Error>) in
                    let id = Int64.random(in: 1...Int64.max)
                    let input = Sync.Input.enqueue(
                        token, operation, id: id, at: environment.now(), serverReadSeq: readSeq, mayBeDeleted: mayBeDeleted)
                    ask(input, for: token, continuation)
                    turn.pass()
                    if operation.isConcealing, Task.isCancelled { giveUpAsking(token) }
                }
            } onCancel: {
                if operation.isConcealing { Task { await self.giveUpAsking(token) } }
            }
        } catch let error as RoostError where error.code == .notConnected {
            try Task.checkCancellation()
            throw error
        }
    }

    /// Sends a message, and returns it as the server has stored it.
    func sendConfirmed(_ operation: SendMessage, isolation: isolated (any Actor)? = #isolation) async throws -> Message {
        try await sendConfirmed(operation, order.take(), clearing: order.take())
    }

    private func sendConfirmed(
        _ operation: SendMessage, _ turn: CallOrder.Turn, clearing next: CallOrder.Turn
    ) async throws -> Message {
        let key = MessageKey(channel: operation.channel, clientId: operation.clientId)
        let token = nextToken()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Waiting begins before sending: otherwise an answer could be missed.
                confirmations[key, default: [:]][token] = continuation
                Task {
                    do { try await enqueue(sending: operation, turn, clearing: next) } catch {
                        takeConfirmation(for: token, of: key)?.resume(throwing: error)
                    }
                }
                if Task.isCancelled { stopWaiting(for: token, of: key) }
            }
        } onCancel: {
            Task { await self.stopWaiting(for: token, of: key) }
        }
    }

    /// The server that operations are sent to; nil before the first connection.
    func knownServer() async -> String? {
        _ = try? await prepare()
        return machine?.server
    }

    func nextToken() -> CallToken {
        lastToken += 1
        return lastToken
    }

    private func stopWaiting(for token: CallToken, of key: MessageKey? = nil) {
        takeWaiting(for: token)?.resume(throwing: CancellationError())
        if let key { takeConfirmation(for: token, of: key)?.resume(throwing: CancellationError()) }
    }

    /// Removes a caller that waits for a message, and the message's entry with its last one.
    private func takeConfirmation(for token: CallToken, of key: MessageKey) -> CheckedContinuation<Message, any Error>? {
        let waiting = confirmations[key]?.removeValue(forKey: token)
        if confirmations[key]?.isEmpty == true { confirmations[key] = nil }
        return waiting
    }

    /// Returns the changes for a live object: everything at once, then each change.
    ///
    /// - Throws: `RoostError` with `storage_in_use` or `storage_failed` if this device's files can't be opened.
    func changes(of topic: ChangeSignals.Topic) async throws -> StoreChanges {
        try await files().store.signals.changes(of: topic)
    }
}

extension SyncDriver {
    /// A live object couldn't read the store, and keeps showing its last data. A damaged cache is replaced.
    nonisolated func readFailed(_ error: any Error) {
        environment.logger.error("The store couldn't be read.", metadata: ["error": "\(error)"])
        guard error is Store.DamagedCache else { return }
        Task { await replaceCache(after: error) }
    }

    /// The error that the app gets if reading the store fails: a refusal or a cancellation as it is, anything else as an error of the store.
    nonisolated func thrown(_ error: any Error) -> any Error {
        if error is RoostError || error is CancellationError { return error }
        readFailed(error)
        return RoostError(.storageFailed, "The store of this device can't be read: \(error)")
    }
}

extension SyncDriver {
    /// Follows changes and connections for a live object, until the token is released.
    ///
    /// Changes are followed before the first connection is reported, so a change right after the server's answer isn't missed.
    ///
    /// - Parameters:
    ///   - connected: Called when there is a connection and everything that was missed is stored.
    ///   - away: Called with the reason when there is none, and with nil when one is being made.
    ///   - failed: Called when this device's files can't be opened. That is tried again each time the app connects.
    ///   - changed: Called with everything at once, then with each change.
    nonisolated func follow(
        _ topic: ChangeSignals.Topic, connected: (@MainActor () async -> Void)? = nil,
        away: (@MainActor (RoostError?) async -> Void)? = nil,
        failed: @escaping @MainActor (RoostError) -> Void, changed: @escaping @MainActor (StoreChange) async -> Void
    ) -> ObservationToken {
        let task = Task {
            guard let changes = await changes(of: topic, failed) else { return }
            await withTaskGroup(of: Void.self) { group in
                if let connected {
                    group.addTask { for await status in self.statuses.values() where status == .online { await connected() } }
                }
                if let away { group.addTask { for await status in self.statuses.values() { await away(status.absence) } } }
                for await change in changes { await changed(change) }
                group.cancelAll()
            }
        }
        return ObservationToken(task: task)
    }

    /// Returns the changes of a topic once this device's files could be opened; nil if the task is cancelled first.
    private nonisolated func changes(
        of topic: ChangeSignals.Topic, _ failed: @MainActor (RoostError) -> Void
    ) async -> StoreChanges? {
        let statuses = statuses.values()
        var attempts = statuses.makeAsyncIterator()
        while !Task.isCancelled {
            do {
                return try await changes(of: topic)
            } catch let error as RoostError {
                environment.logger.error("Live objects are waiting for this device's files.", metadata: ["error": "\(error)"])
                await failed(error)
            } catch {
                return nil
            }
            while let status = await attempts.next(), !status.isActive {}
        }
        return nil
    }

    /// Waits until there is a connection and everything that was missed has arrived. False if it takes longer than this.
    nonisolated func isOnline(within duration: Duration) async -> Bool {
        let (statuses, clock) = (statuses.values(), environment.clock)
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await status in statuses where status == .online { return true }
                return false
            }
            group.addTask {
                try? await clock.sleep(for: duration)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
