import Logging
import RoostAPI

/// The app's requests.
extension SyncDriver {
    /// Begins to connect, and returns when everything that was missed is there.
    func connect() async throws {
        _ = try await prepare()
        guard statuses.current != .online else { return }
        let token = nextToken()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                connecting[token] = continuation
                submit(.start)
            }
        } onCancel: {
            Task { await self.stopWaiting(for: token) }
        }
    }

    /// Begins to connect.
    func start() async throws {
        _ = try await prepare()
        await post(.start)
    }

    func stop() async { await post(.stop) }

    /// Calls an operation that is within its limits. Returns the frame of the reply.
    func call(_ operation: any RoostAPI.Operation) async throws -> [UInt8] {
        try await answer { .call($0, operation) }
    }

    /// Extends a channel's cached messages by one page.
    func loadOlder(in channel: ChannelID, limit: Int) async throws {
        _ = try await answer { .loadOlder($0, channel, limit: limit) }
    }

    /// Changes something of a message in the outbox.
    func request(_ input: Sync.Input) async {
        _ = try? await prepare()
        await post(input)
    }

    private func answer(_ input: (CallToken) -> Sync.Input) async throws -> [UInt8] {
        _ = try await prepare()
        let token = nextToken()
        let input = input(token)
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    replies[token] = continuation
                    submit(input)
                }
            } onCancel: {
                Task { await self.post(.cancel(token)) }
            }
        } catch {
            try Task.checkCancellation()
            throw error
        }
    }

    /// Writes a message into the outbox, and returns when it is on disk. Messages are sent in the order of these calls.
    func enqueue(_ operation: SendMessage) async throws {
        let files = try await prepare()
        let (previous, createdAt) = (lastInsert, environment.now())
        let insert = Task {
            _ = await previous?.result
            let item = try await files.outbox.insert(operation, createdAt: createdAt)
            files.store.signals.signal(StoreChange(outbox: [operation.channel]))
            submit(.enqueued(item))
        }
        lastInsert = insert
        do {
            try await insert.value
        } catch {
            throw RoostError(.unavailable, "The message can't be written to this device's outbox: \(error)")
        }
    }

    /// Sends a message, and returns it as the server has stored it.
    func sendConfirmed(_ operation: SendMessage) async throws -> Message {
        let key = MessageKey(channel: operation.channel, clientId: operation.clientId)
        let token = nextToken()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Waiting begins before sending, or an answer could come unseen.
                confirmations[key, default: [:]][token] = continuation
                Task {
                    do { try await enqueue(operation) } catch {
                        confirmations[key]?.removeValue(forKey: token)?.resume(throwing: error)
                    }
                }
            }
        } onCancel: {
            Task { await self.stopWaiting(for: token, of: key) }
        }
    }

    private func nextToken() -> CallToken {
        lastToken += 1
        return lastToken
    }

    private func stopWaiting(for token: CallToken, of key: MessageKey? = nil) {
        connecting.removeValue(forKey: token)?.resume(throwing: CancellationError())
        if let key { confirmations[key]?.removeValue(forKey: token)?.resume(throwing: CancellationError()) }
    }

    /// Returns the changes for a live object: everything at once, then each change. Nil if this device's files can't be opened.
    func changes(of topic: ChangeSignals.Topic) async -> StoreChanges? {
        do {
            return try await files().store.signals.changes(of: topic)
        } catch {
            environment.logger.error("Live objects stay empty.", metadata: ["error": "\(error)"])
            return nil
        }
    }
}

extension SyncDriver {
    /// A live object keeps showing its last data if the store can't be read.
    nonisolated func logReadFailure(_ error: any Error) {
        environment.logger.error("The store couldn't be read.", metadata: ["error": "\(error)"])
    }
}

extension SyncDriver {
    /// Follows changes, and connections, for a live object, until the token is released.
    ///
    /// Changes are followed before the first connection is told of. So a change that comes right after the server's answer isn't missed.
    ///
    /// - Parameter connected: Called when there is a connection, and everything that was missed is stored.
    /// - Parameter changed: Called with everything at once, then with each change.
    nonisolated func follow(
        _ topic: ChangeSignals.Topic, connected: (@MainActor () async -> Void)? = nil,
        changed: @escaping @MainActor (StoreChange) async -> Void
    ) -> ObservationToken {
        let task = Task {
            guard let changes = await changes(of: topic) else { return }
            await withTaskGroup(of: Void.self) { group in
                if let connected {
                    group.addTask { for await status in self.statuses.values() where status == .online { await connected() } }
                }
                for await change in changes { await changed(change) }
                group.cancelAll()
            }
        }
        return ObservationToken(task: task)
    }

    /// Waits until there is a connection and all that was missed is there. False when it takes longer than this.
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
