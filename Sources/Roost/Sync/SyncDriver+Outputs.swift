import Logging
import RoostAPI

/// Performs the machine's outputs.
extension SyncDriver {
    /// Asks the server for what comes next, writes the rows of all outputs in one transaction, then does the rest in its order: nobody learns
    /// of a row before it is stored.
    func perform(_ outputs: [Sync.Output]) async {
        for output in outputs { if case .sendAhead(let bytes) = output { outgoing?.yield(.message(bytes)) } }
        let requested = outputs.flatMap { output in if case .store(let writes) = output { writes } else { [StoreWrite]() } }
        let writes = await showingOthers(requested, outputs)
        let storeFailure = writes.isEmpty ? nil : await store(writes)
        let isStored = storeFailure == nil
        // A watch ends with the membership, without a word of the server's.
        for case .leave(let channel) in writes { signals.send(.stoppedWatching(channel)) }
        var batch = OutboxBatch()
        var kept: [Sync.Input] = []
        var untold: [Sync.Input] = []
        for output in outputs {
            switch output {
            // A message whose row couldn't be stored stays in the outbox: it is sent again, and the server knows it by its client id. What is
            // removed goes all the same: what the user gives up, which is told below, and a message that the server wouldn't know again.
            case .outbox(.done) where !isStored, .outbox(.arrived) where !isStored: continue
            // Nor is the app told of it: it comes again, among what was missed. What was missed before, and is stored, comes with it.
            case .event(let event, _) where !isStored:
                if case .missed(let after) = event { untold.append(.missedAgain(after)) }
                continue
            case .outbox(let write):
                batch.writes.append(write)
                continue
            case .send, .kept, .noted, .reply:
                // These say what is in the file. Nothing else waits for the disk, so that several writes are one.
                await write(&batch, before: output)
            default: break
            }
            switch output {
            case .kept(let token, let id, let channel):
                guard batch.failure == nil else { continue }
                let isGone = batch.written.gone.contains(id)
                kept.append(.kept(token, id, of: channel, isGone: isGone, underWay: batch.written.takeUnderWay()))
            case .noted(let id, let channel):
                guard batch.failure == nil else { continue }
                let isTaken = batch.written.taken.contains(id)
                kept.append(.noted(id, of: channel, as: batch.written.rows[id], isTaken: isTaken))
            default: await perform(output)
            }
        }
        await write(&batch)
        if let failure = batch.failure {
            // The machine goes on from the file only where somebody waits for something to be kept. Of a large outbox that is much to read.
            let isAwaited = machine?.keeping.isEmpty == false
            var saved: SavedOutbox?
            if isAwaited { saved = try? await savedOutbox() }
            kept.append(.outboxFailed(saved, "\(failure)", isAwaited: isAwaited))
        }
        // Before what came meanwhile: that isn't in the file yet, and would be undone by a state of the file from before it.
        inputs.insert(contentsOf: kept, at: 0)
        if let storeFailure, let files = try? await files() { await storeFailed(files.store, "\(storeFailure)") }
        inputs.insert(contentsOf: untold, at: 0)
    }

    /// Returns the writes of outputs with what other chats of the same files have asked for (``Sync/showingOthers(_:_:without:)``).
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

    /// Returns why the rows aren't stored; nil if they are. The machine has to get the state that is.
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
        case .store(let writes): tellLeavers(of: writes)
        case .sendAhead: break
        case .outbox, .kept, .noted: break
        case .reply(let token, let result):
            let value = machine?.readAnswers.removeValue(forKey: token)
            replies.removeValue(forKey: token)?.resume(with: result.map { CallAnswer(bytes: $0, value: value) }.mapError { $0 })
        case .settled(let key, let result): settle(key, result)
        case .repeated(let edit):
            let message = try? await files().store.read { try $0.message(edit.message, in: edit.channel) }
            if let message { droppedMentions.note(message.answered(edit)) }
        case .status(let status): set(status)
        case .event(let event, let position): await tell(event, at: position)
        case .signal(let signal): signals.send(.signal(signal))
        case .watching(let channel): signals.send(.watching(channel))
        case .unwatched(let channel): signals.send(.unwatched(channel))
        case .arrived(let arrivals): Task { await tell(arrivals) }
        case .startTimer(let timer, let delay): startTimer(timer, delay)
        case .cancelTimer(let timer): timers.cancel(timer)
        case .log(let level, let message): environment.logger.log(level: level, "\(message)")
        }
    }

    /// Tells of members who aren't any more: the server tells a little later that they don't type.
    private func tellLeavers(of writes: [StoreWrite]) {
        for case .rows(let rows, of: .channel(let channel)) in writes {
            if !rows.leavers.isEmpty { signals.send(.left(rows.leavers, channel)) }
        }
    }

    /// Tells the app of an event that is stored.
    private func tell(_ event: ChatEvent, at position: StreamPosition?) async {
        guard case .happened(var news) = event else { return events.send(event, at: position) }
        if news.kind == .messageNew, let channel = news.channel, let actor = news.actor {
            // What the server says of somebody's doing isn't what they have typed.
            if news.message?.kind != .system { signals.send(.wrote(actor, channel)) }
        } else if let message = news.message, let position {
            // An event is the same for all members. What one of them has deleted for themselves, only the store knows.
            guard let shown = try? await files().store.read({ try $0.shown(message) }) else {
                return events.send(.missed(after: [position.channel: position.seq.subtractingWithSaturation(1)]), at: nil)
            }
            news.message = shown
        } else if let purged = news.purged, let channel = news.channel {
            // A member who may not see the message that was deleted is told nothing: the place of it comes to all.
            let maySee = try? await files().store.read { try $0.maySee(messageAt: purged.seq, in: channel) }
            guard maySee ?? true else { return }
        }
        events.send(.happened(news), at: position)
    }

    /// One call at a time: the machine requests the next token only after this one came, failed or was given up.
    private func fetchToken() {
        let provider = environment.token
        // A chat that is gone doesn't stay for the answer.
        tokenFetch = Task { [weak self] in
            let input: Sync.Input
            do {
                input = .token(try await provider())
            } catch {
                input = .tokenFailed("\(error)")
            }
            // A provider that was given up may answer after all. Its answer isn't the one that is awaited now.
            guard !Task.isCancelled else { return }
            await self?.post(input)
        }
    }

    private func open(_ number: Int64) {
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
        // A peer that is gone doesn't take the goodbye: after a while the socket is closed without.
        let clock = environment.clock
        Task {
            try? await clock.sleep(for: .seconds(5))
            connection.cancel()
        }
    }

    /// The part of a batch of outputs that is about the outbox.
    private struct OutboxBatch {
        /// What is still to be written.
        var writes: [OutboxWrite] = []
        /// Why some of it couldn't be written. From then on the file stays as it is: callers are told that nothing was kept, and what follows may build on it.
        var failure: (any Error)?
        /// What the file says of the operations.
        var written = WrittenOutbox()
        /// The operations of which callers are told that they weren't kept.
        var notKept: Set<Int64> = []
    }

    /// Writes what has to be in the file before an output. If it can't be, what nobody waits for is owed.
    private func write(_ batch: inout OutboxBatch, before output: Sync.Output? = nil) async {
        let writes = batch.writes
        batch.writes = []
        guard !writes.isEmpty else { return }
        if batch.failure == nil { batch.failure = await apply(writes, &batch.written) }
        guard let failure = batch.failure else { return }
        var awaitedCount = 0
        if case .kept(let token, _, _)? = output { awaitedCount = machine?.keeping[token] ?? 0 }
        for write in writes.dropLast(awaitedCount) {
            // Another state of what isn't kept isn't kept either.
            if case .update(let item, _) = write, batch.notKept.contains(item.id) { continue }
            owedWrites.add(write)
        }
        // What somebody waits for isn't owed: they are told that it wasn't kept, or not taken back, and it goes on as the file has it.
        for write in writes.suffix(awaitedCount) {
            switch write {
            case .put(let item), .change(_, _, let item?): batch.notKept.insert(item.id)
            default: break
            }
        }
        // Nothing is put into a file that was deleted, and what is to be written to it goes on without.
        if failure is Outbox.Deleted { owedWrites.dropItems() }
    }

    /// Returns why the writes aren't in the file; nil if they are.
    ///
    /// - Parameter written: Gets what the file says of the operations.
    private func apply(_ writes: [OutboxWrite], _ written: inout WrittenOutbox) async -> (any Error)? {
        let files: SyncFiles
        do { files = try await self.files() } catch { return error }
        let owed = owedWrites.all
        let all = owed + writes
        func isServer(_ write: OutboxWrite) -> Bool { if case .server = write { true } else { false } }
        let owedServer = owed.contains(where: isServer)
        var isWritten = false
        defer {
            var change = StoreChange(outbox: Set(all.compactMap(\.channel)), isOutbox: true)
            // Of every operation it is another question now whether it is for this server. What is owed was told of when it wasn't written.
            if writes.contains(where: isServer) || (owedServer && isWritten) { change.merge(.everything) }
            files.store.signals.signal(change)
        }
        do {
            written.merge(try await files.outbox.apply(all))
            isWritten = true
            owedWrites = OwedWrites()
            return nil
        } catch {
            // The rows stay unchanged. What was carried out is sent once more after a restart, which does nothing twice.
            environment.logger.error("The outbox couldn't be written.", metadata: ["error": "\(error)"])
            environment.onStorageProblem(StorageProblem(.outboxNotWritten, files.outbox.url, error))
            return error
        }
    }

    /// What the outbox has, with what is still to be written to it.
    func savedOutbox() async throws -> SavedOutbox {
        let files = try await files()
        var saved = try await files.outbox.saved()
        owedWrites.apply(to: &saved)
        saved.others = files.outbox.begunByOthers()
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

    /// Ends whatever still waits.
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
            // The answer to an edit may be somebody else's message, whose client gave it the same name.
            guard message.sender == environment.user else { return }
        }
        for waiting in (confirmations.removeValue(forKey: key) ?? [:]).values { waiting.resume(with: result.mapError { $0 }) }
    }
}
