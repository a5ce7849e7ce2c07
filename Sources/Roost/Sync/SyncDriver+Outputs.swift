import Logging
import RoostAPI

/// Performs the machine's outputs.
extension SyncDriver {
    /// Sends the frames that go ahead, writes the rows of all outputs in one transaction, then performs the rest in order: nothing learns of a row
    /// before it is stored.
    func perform(_ outputs: [Sync.Output]) async {
        for output in outputs { if case .sendBeforeStoring(let bytes) = output { outgoing?.yield(.message(bytes)) } }
        let requested = outputs.flatMap { output in if case .store(let writes) = output { writes } else { [StoreWrite]() } }
        let writes = await showingOthers(requested, outputs)
        let storeFailure = writes.isEmpty ? nil : await store(writes)
        let isStored = storeFailure == nil
        // What the batch was to delete is deleted, or stays.
        shownMessages.endTrimming()
        // A watch ends with the membership, without notice from the server.
        for case .leave(let channel) in writes { signals.send(.stoppedWatching(channel)) }
        var batch = OutboxBatch()
        var kept: [Sync.Input] = []
        var unreported: [Sync.Input] = []
        for output in outputs {
            switch output {
            // A message whose row couldn't be stored stays in the outbox: it is sent again, and the server recognises it by its client id. Removals
            // are written all the same: operations that the user discards, which is reported below, and a message that the server wouldn't recognise.
            case .outbox(.done) where !isStored, .outbox(.arrived) where !isStored: continue
            // The app isn't notified of it either: it arrives again among the missed events, with those that were missed before and are stored.
            case .event(let event, _) where !isStored:
                if case .missed(let after) = event { unreported.append(.missedAgain(after)) }
                continue
            case .outbox(let write):
                batch.writes.append(write)
                continue
            case .send, .awaitKept, .awaitNoted, .reply:
                // These report what is in the file. Nothing else waits for the disk, so several writes are combined.
                await write(&batch, before: output)
            default: break
            }
            switch output {
            case .awaitKept(let token, let id, let channel):
                guard batch.failure == nil else { continue }
                let isGone = batch.written.gone.contains(id)
                kept.append(.kept(token, id, of: channel, isGone: isGone, inFlight: batch.written.takeInFlight()))
            case .awaitNoted(let id, let channel):
                guard batch.failure == nil else { continue }
                let isTaken = batch.written.taken.contains(id)
                kept.append(.noted(id, of: channel, as: batch.written.rows[id], isTaken: isTaken))
            default: await perform(output)
            }
        }
        await write(&batch)
        if let failure = batch.failure {
            // The machine continues from the file only if a caller waits for something to be kept. Of a large outbox that is much to read.
            let isAwaited = machine?.keeping.isEmpty == false
            var saved: SavedOutbox?
            if isAwaited { saved = try? await savedOutbox() }
            let reason = (failure as? RoostError)?.message ?? "\(failure)"
            kept.append(.outboxFailed(saved, reason, code: .init(ofFailedWrite: failure), isAwaited: isAwaited))
        }
        // Before inputs that arrived meanwhile: those aren't in the file yet, and an earlier state of the file would undo them.
        inputs.insert(contentsOf: kept, at: 0)
        if let storeFailure, let files = try? await files() { await storeFailed(files.store, "\(storeFailure)") }
        inputs.insert(contentsOf: unreported, at: 0)
    }

    /// Returns the writes of outputs with what other chats of the same files have requested (``Sync/showingOthers(_:_:without:)``).
    private func showingOthers(_ writes: [StoreWrite], _ outputs: [Sync.Output]) async -> [StoreWrite] {
        let showsOutbox = writes.contains { write in
            switch write {
            case .overlay, .keepOverlays: true
            default: false
            }
        }
        guard showsOutbox, let files = try? await files(), files.isShared, let outbox = try? await savedOutbox(), let machine else {
            return writes
        }
        let ended = outputs.compactMap { output in if case .outbox(let write) = output { write.removed } else { nil } }
        return machine.showingOthers(writes, outbox, without: Set(ended))
    }

    /// Returns why the rows aren't stored; nil if they are. The machine must then get the stored state.
    func store(_ writes: [StoreWrite]) async -> (any Error)? {
        do {
            let files = try await files()
            do {
                try await files.store.write(writes)
                return nil
            } catch {
                _ = try? await files.store.recover(from: error)
                return error
            }
        } catch {
            return error
        }
    }

    private func perform(_ output: Sync.Output) async {
        switch output {
        case .fetchToken: fetchToken()
        case .cancelToken: tokenFetch?.cancel()
        case .open(let number): open(number)
        case .send(let bytes): outgoing?.yield(.message(bytes))
        case .ping: outgoing?.yield(.ping)
        case .close: close()
        case .store(let writes): reportLeavers(of: writes)
        case .sendBeforeStoring: break
        case .outbox, .awaitKept, .awaitNoted: break
        case .reply(let token, let result):
            let value = machine?.readAnswers.removeValue(forKey: token)
            replies.removeValue(forKey: token)?.resume(with: result.map { CallAnswer(bytes: $0, value: value) }.mapError { $0 })
        case .settled(let key, let result): settle(key, result)
        case .repeated(let edit):
            let message = try? await files().store.read { try $0.message(edit.message, in: edit.channel) }
            if let message { droppedMentions.note(message.answered(edit)) }
        case .status(let status): set(status)
        case .event(let event, let position): await report(event, at: position)
        case .signal(let signal): signals.send(.signal(signal))
        case .watching(let channel): signals.send(.watching(channel))
        case .unwatched(let channel): signals.send(.unwatched(channel))
        case .arrived(let arrivals): Task { await report(arrivals) }
        case .startTimer(let timer, let delay): startTimer(timer, delay)
        case .cancelTimer(let timer): timers.cancel(timer)
        case .log(let level, let message): environment.logger.log(level: level, "\(message)")
        }
    }

    /// Reports members who have left: the server reports only a little later that they have stopped typing.
    private func reportLeavers(of writes: [StoreWrite]) {
        for case .rows(let rows, of: .channel(let channel)) in writes {
            if !rows.leavers.isEmpty { signals.send(.left(rows.leavers, channel)) }
        }
    }

    /// Sends the app a stored event.
    private func report(_ event: ChatEvent, at position: StreamPosition?) async {
        guard case .happened(var news) = event else { return events.send(event, at: position) }
        if news.kind == .messageNew, let channel = news.channel, let actor = news.actor {
            // A system message about a user's action isn't something they have typed.
            if news.message?.kind != .system { signals.send(.wrote(actor, channel)) }
        } else if let message = news.message, let position {
            // An event is the same for all members. Only the store knows what one of them has deleted for themselves.
            guard let shown = try? await files().store.read({ try $0.shown(message) }) else {
                return events.send(.missed(after: [position.channel: position.seq.subtractingWithSaturation(1)]), at: nil)
            }
            news.message = shown
        } else if let purged = news.purged, let channel = news.channel {
            // A member who may not see the deleted message isn't notified: its position is sent to all.
            let maySee = try? await files().store.read { try $0.maySee(messageAt: purged.seq, in: channel) }
            guard maySee ?? true else { return }
        }
        events.send(.happened(news), at: position)
    }

    /// One call at a time: the machine requests the next token only after this one arrived, failed or was given up.
    private func fetchToken() {
        guard mayConnect else { return }
        let provider = environment.token
        // Weak, so the task doesn't keep the chat alive.
        tokenFetch = Task { [weak self] in
            let input: Sync.Input
            do {
                input = .token(try await provider())
            } catch let error as RoostError where error.code == .unauthenticated {
                input = .tokenDenied(error)
            } catch {
                input = .tokenFailed("\(error)")
            }
            // A provider that was given up may still answer. Its answer isn't the one awaited now.
            guard !Task.isCancelled else { return }
            await self?.post(input)
        }
    }

    /// Whether the machine may connect. If the server has just signed out the device of a user who logs out, another connection would list it again.
    private var mayConnect: Bool { !isLoggingOut }

    private func open(_ number: Int64) {
        guard mayConnect else { return }
        let (commands, continuation) = AsyncStream.makeStream(of: TransportCommand.self)
        outgoing = continuation
        let (transport, url) = (environment.transport, environment.url)
        connection = Task {
            await transport.run(url: url, outgoing: commands) { event in await self.receive(event, of: number) }
        }
    }

    private func close() {
        outgoing?.finish()
        outgoing = nil
        guard let connection else { return }
        self.connection = nil
        // A peer that is gone doesn't accept the close frame: after a while the socket is closed without it.
        let clock = environment.clock
        Task {
            try? await clock.sleep(for: .seconds(5))
            connection.cancel()
        }
    }

    /// The part of a batch of outputs that concerns the outbox.
    private struct OutboxBatch {
        /// The writes still to be made.
        var writes: [OutboxWrite] = []
        /// Why some of it couldn't be written. From then on the file stays as it is: callers get an error, and later writes may build on the failed ones.
        var failure: (any Error)?
        /// The state of the operations in the file.
        var written = WrittenOutbox()
        /// The operations whose callers are notified that they weren't kept.
        var notKept: Set<Int64> = []
    }

    /// Writes what must be in the file before an output. If it can't be written, the writes that no caller waits for are owed.
    private func write(_ batch: inout OutboxBatch, before output: Sync.Output? = nil) async {
        let writes = batch.writes
        batch.writes = []
        guard !writes.isEmpty else { return }
        if batch.failure == nil { batch.failure = await apply(writes, &batch.written) }
        guard let failure = batch.failure else { return }
        var awaitedCount = 0
        if case .awaitKept(let token, _, _)? = output { awaitedCount = machine?.keeping[token] ?? 0 }
        for write in writes.dropLast(awaitedCount) {
            // Another state of an operation that isn't kept isn't kept either.
            if case .update(let item, _) = write, batch.notKept.contains(item.id) { continue }
            pendingWrites.add(write)
        }
        // Awaited writes aren't owed: their callers are notified that the operation wasn't kept, or not taken back, and it continues as the file has it.
        for write in writes.suffix(awaitedCount) {
            switch write {
            case .put(let item), .change(_, _, let item?): batch.notKept.insert(item.id)
            default: break
            }
        }
        // Nothing is put into a deleted file, and operations whose state was to be written continue without it.
        if failure is Outbox.Deleted { pendingWrites.dropItems() }
    }

    /// Returns why the writes aren't in the file; nil if they are.
    ///
    /// - Parameter written: Receives the state of the operations in the file.
    private func apply(_ writes: [OutboxWrite], _ written: inout WrittenOutbox) async -> (any Error)? {
        let files: SyncFiles
        do { files = try await self.files() } catch { return error }
        let owed = pendingWrites.all
        let all = owed + writes
        func isServer(_ write: OutboxWrite) -> Bool { if case .server = write { true } else { false } }
        let owedServer = owed.contains(where: isServer)
        var isWritten = false
        defer {
            var change = StoreChange(outbox: Set(all.compactMap(\.channel)), isOutbox: true)
            // Every operation may now be for this server, or no longer. Owed writes were reported when they failed.
            if writes.contains(where: isServer) || (owedServer && isWritten) { change.merge(.everything) }
            files.store.signals.signal(change)
        }
        do {
            written.merge(try await files.outbox.apply(all))
            isWritten = true
            pendingWrites = PendingWrites()
            return nil
        } catch {
            // The rows stay unchanged. Operations that were carried out are sent again after a restart, which does nothing twice.
            environment.logger.error("The outbox couldn't be written.", metadata: ["error": "\(error)"])
            environment.onStorageProblem(StorageProblem(.outboxNotWritten, files.outbox.url, error))
            return error
        }
    }

    /// The content of the outbox, with the writes that are owed to it.
    func savedOutbox() async throws -> SavedOutbox {
        let files = try await files()
        var saved = try await files.outbox.saved()
        pendingWrites.apply(to: &saved)
        saved.others = files.outbox.startedByOtherChats()
        return saved
    }

    private func set(_ status: Sync.Status) {
        if status != .online { signals.send(.disconnected, at: lastHeard) }
        switch status {
        case .online:
            arrivalRules = ArrivalRules()
            statuses.send(.online)
            finishConnecting(.success(()))
        case .refused(let error):
            statuses.send(.refused(error))
            finishConnecting(.failure(error))
        case .failed(let error):
            statuses.send(.failed(error))
            finishConnecting(.failure(error))
        case .offline:
            statuses.send(.offline)
            finishConnecting(.failure(RoostError(.notConnected, "\(disconnected).")))
        case .connecting: statuses.send(.connecting)
        case .waiting(let delay, let reason):
            statuses.send(.waiting(until: environment.now().adding(delay), because: reason))
        }
    }

    func finishConnecting(_ result: Result<Void, any Error>) {
        for waiting in connecting.values { waiting.resume(with: result) }
        connecting = [:]
    }

    /// Fails all callers that still wait.
    func failEverything(_ error: RoostError) {
        finishConnecting(.failure(error))
        for waiting in openingConnections.values { waiting.resume(throwing: error) }
        openingConnections = [:]
        for waiting in replies.values { waiting.resume(throwing: error) }
        replies = [:]
        for waiting in confirmations.values.flatMap(\.values) { waiting.resume(throwing: error) }
        confirmations = [:]
    }

    private func settle(_ key: MessageKey, _ result: Result<Message, RoostError>) {
        if case .success(let message) = result {
            droppedMentions.note(message)
            // The answer to an edit may be another user's message, whose client gave it the same id.
            guard message.sender == environment.user else { return }
        }
        for waiting in (confirmations.removeValue(forKey: key) ?? [:]).values { waiting.resume(with: result.mapError { $0 }) }
    }
}

extension RoostError.Code {
    /// What the callers get whose operations couldn't be written to the outbox.
    fileprivate init(ofFailedWrite failure: any Error) {
        switch failure {
        case let refusal as RoostError: self = refusal.code
        case is Outbox.Deleted: self = .storageGone
        default: self = .storageFailed
        }
    }
}
