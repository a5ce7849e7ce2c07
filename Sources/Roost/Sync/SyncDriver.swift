import Foundation
import Logging
import NIOConcurrencyHelpers
import RoostAPI

/// Runs a ``Sync`` machine with a real clock, store, transport and token provider.
///
/// All inputs go through one queue. They are handled in order, and the machine's outputs are performed before the next inputs are taken, so rows are
/// on disk before anything learns of them. The driver itself decides nothing.
actor SyncDriver {
    /// The environment of a client. Simulations and tests have their own.
    struct Environment: Sendable {
        var url: URL
        var user: UserID
        var storage: Chat.Storage
        /// This device's description for the server; nil for none.
        var device: DeviceInfo?
        var settings: Sync.Settings
        var cacheSizeBytesMax: Int
        var onStorageProblem: @Sendable (StorageProblem) -> Void
        var transport: any Transport
        var clock: any Clock<Duration>
        var random: any RandomNumberGenerator & Sendable
        /// The device's clock, for the times shown beside pending messages. Nothing is ordered by it.
        var now: @Sendable () -> Timestamp
        var token: @Sendable () async throws -> String
        var logger: Logger
    }

    nonisolated let environment: Environment
    nonisolated let statuses = Broadcast(ConnectionStatus.offline)
    nonisolated let events = EventFeed()
    nonisolated let signals: SignalFeed
    nonisolated let droppedMentions = DroppedMentions()
    nonisolated let order = CallOrder()
    nonisolated let shownMessages = ShownMessages()

    // The machine and its inputs: only `drain` hands inputs over, one batch at a time.
    var machine: Sync?
    var inputs: [Sync.Input] = []
    var isDraining = false
    /// The app's requests to end the connection that aren't handled yet.
    var pendingStops = 0
    /// The app's requests to connect that haven't been started yet, for example because the files are being opened.
    var pendingStarts = 0
    /// The value of ``stopCount`` when the app last asked to connect; nil before. If it differs now, the app has disconnected since.
    var stopCountAtStart: Int?
    /// The number of the app's requests in progress that may write to the files.
    var activeWrites = 0
    /// The callers that wait until there are none.
    var waitingForWrites: [CheckedContinuation<Void, Never>] = []
    private nonisolated let stops = NIOLockedValueBox(0)
    /// When the server was last heard from, by this device's clock.
    private(set) var lastHeard: Timestamp?
    /// The size of the messages among the inputs, and the transports that wait for it to fall.
    private var inputBytes = 0
    private var waitingTransports: [CheckedContinuation<Void, Never>] = []
    /// The limits of the inputs beyond which a transport waits.
    private static let inputsMax = (count: 512, bytes: 4 << 20)
    /// The callers that wait until no batch is in progress.
    private var waitingForRest: [CheckedContinuation<Void, Never>] = []
    var upkeep: CacheUpkeep
    /// What the driver has ended or released while the app is in the background.
    struct Suspended {
        /// The files that were released; nil if they aren't shared, and were kept.
        var files: SyncFiles?
        /// Whether it was connected, trying to connect, or about to.
        var reconnects: Bool
        /// The value of ``stopCount`` after the stop for the background. If it differs, the app has disconnected since.
        var stopCount: Int
        /// Whether a write takes the files back while it lasts: they were released because nothing needed them, not because the app moved to the background.
        var takesBackToWrite: Bool
    }
    var suspended: Suspended?
    /// Whether the files are released to other processes.
    var hasReleasedFiles: Bool { suspended?.files != nil }
    /// Whether the app is in the background, as last reported by the system, or as found when the chat was created.
    var isInBackground = false
    /// The writes that the outbox file has refused so far.
    var pendingWrites = PendingWrites()
    /// Whether the machine must read the files again: another process, or another chat of this one, may have had them.
    var isReopened = false
    /// Whether another chat of this process is gone, which may have left operations in the outbox.
    private(set) var mayHaveOrphanedOperations = false
    /// Whether the user is logging out, or has: the app's requests are refused.
    private(set) var isLoggingOut = false
    /// Whether the driver is checking if the user can log out: the app's requests wait for that.
    private(set) var isCheckingLogOut = false
    private var waitingForCheck: [CheckedContinuation<Void, Never>] = []
    /// Whether the log-out is done: nothing is handled any longer.
    private(set) var hasEnded = false
    private var lastLogOut: Task<Void, any Error>?

    /// The damage that a live object has found in the cache, until the cache is replaced.
    private var damage: (any Error)?
    /// Whether it was replaced for a live object. If there is damage again, the file isn't the cause.
    private var isReplacedForReader = false

    // Work in progress: each entry is removed where it finishes.
    var opening: Task<SyncFiles, any Error>?
    var preparation: Task<SyncFiles, any Error>?
    var timers = TimerSchedule()
    var timerSleep: Task<Void, Never>?
    /// The time since the driver was created, on the environment's clock.
    nonisolated let elapsed: @Sendable () -> Duration
    var outgoing: AsyncStream<TransportCommand>.Continuation?
    var connection: Task<Void, Never>?
    var tokenFetch: Task<Void, Never>?

    /// How often the app has disconnected, counted from the moment of its request.
    nonisolated var stopCount: Int { stops.withLockedValue { $0 } }
    /// Ends attempts to connect that haven't begun.
    nonisolated func noteStop() { stops.withLockedValue { $0 += 1 } }

    // The waiting callers.
    var lastToken: CallToken = 0
    var arrivalRules = ArrivalRules()
    var replies: [CallToken: CheckedContinuation<CallAnswer, any Error>] = [:]
    /// Those of a connection that begins once the files are open.
    var openingConnections: [CallToken: CheckedContinuation<Void, any Error>] = [:]
    var connecting: [CallToken: CheckedContinuation<Void, any Error>] = [:]
    var confirmations: [MessageKey: [CallToken: CheckedContinuation<Message, any Error>]] = [:]

    init(_ environment: Environment) {
        self.environment = environment
        signals = SignalFeed(now: environment.now)
        upkeep = CacheUpkeep(sizeBytesMax: environment.cacheSizeBytesMax)
        elapsed = Self.stopwatch(environment.clock)
    }

    static let client = "roost-swift/0.1.0"

    // MARK: Files

    /// Opens the files, once. Live objects need nothing else to show their content.
    func files() async throws -> SyncFiles {
        let task = opening ?? beginOpening()
        do {
            return try await task.value
        } catch {
            // A caller that waited longer may have begun another one.
            if opening == task { opening = nil }
            if let error = error as? RoostError { throw error }
            throw RoostError(.storageFailed, "The files of this device can't be opened: \(error)")
        }
    }

    private func beginOpening() -> Task<SyncFiles, any Error> {
        let task = Task { [environment] in try await SyncFiles.open(environment) }
        opening = task
        // Nothing else releases files that are opened in the background and only read.
        if environment.storage.isShared {
            Task { [weak self] in
                _ = try? await task.value
                await self?.releaseFilesInBackground()
            }
        }
        return task
    }

    /// Opens the files and creates the machine, once.
    func prepare() async throws -> SyncFiles {
        try await requireSession()
        let task =
            preparation
            ?? Task { [environment] in
                let files = try await files()
                // Before the outbox is read: operations left to another chat come to this one if that chat goes just then.
                files.whenReleased { [weak self] in Task { await self?.takeOver() } }
                let (saved, overlays) = try await files.store.recoveredState()
                let machine = Sync(
                    user: environment.user, client: Self.client, device: environment.device?.description(files.device),
                    settings: environment.settings, saved: saved,
                    outbox: try await savedOutbox(), random: environment.random)
                // The process may have ended between the writes of the two files. Released files are written when they are taken back.
                if overlays != machine.overlays, !hasReleasedFiles, let failure = await store(machine.overlayWrites) {
                    await storeFailed(files.store, "\(failure)")
                }
                // The user may have logged out meanwhile: a machine without inputs would never answer.
                try await requireSession()
                self.machine = machine
                if isInBackground { self.machine?.pauseReading() }
                if mayHaveOrphanedOperations { Task { await drain() } }
                return files
            }
        preparation = task
        do {
            let files = try await task.value
            try await requireSession()
            return files
        } catch {
            if preparation == task { preparation = nil }
            if let error = error as? RoostError { throw error }
            throw RoostError(.storageFailed, "The files of this device can't be opened: \(error)")
        }
    }

    static let loggedOut = RoostError(.unauthenticated, "The user has logged out of this chat.")

    /// - Throws: `RoostError` with `unauthenticated` once the user logs out.
    func requireSession() async throws {
        while isCheckingLogOut { await withCheckedContinuation { waitingForCheck.append($0) } }
        guard !isLoggingOut else { throw Self.loggedOut }
    }

    /// Replaces a cache in which a live object found damage, before anything else is written: that would build on rows that are gone.
    func replaceCache(after damage: any Error) async {
        guard !isReplacedForReader, (try? await prepare()) != nil else { return }
        self.damage = damage
        await drain()
    }

    private func replaceDamagedCache() async {
        guard let damage else { return }
        self.damage = nil
        guard !isReplacedForReader, let files = try? await files() else { return }
        do {
            guard try await files.store.recover(from: damage) else { return }
            isReplacedForReader = true
            if let machine { try await files.store.write(machine.overlayWrites) }
        } catch {
            environment.logger.error("The damaged cache couldn't be replaced.", metadata: ["error": "\(error)"])
        }
        await storeFailed(files.store, "\(damage)")
    }

    /// Makes the machine continue from what the files hold, before it handles anything else, once they are open again. If they can't be read, it
    /// doesn't connect.
    private func readAgain() async throws {
        guard isReopened else { return }
        isReopened = false
        do {
            let files = try await files()
            defer { files.store.signals.signal(.everything) }
            let saved = try await files.store.recoveredState().saved
            inputs.insert(.reopened(saved, try await savedOutbox()), at: 0)
        } catch {
            isReopened = true
            environment.logger.error("The files couldn't be read again.", metadata: ["error": "\(error)"])
            refuseStarts(RoostError(.storageFailed, "The files of this device can't be read: \(error)"))
            throw error
        }
    }

    /// Refuses the requested connections: the machine doesn't know what the files hold. Another attempt reads them again.
    private func refuseStarts(_ error: RoostError) {
        let others = inputs.filter { if case .start = $0 { false } else { true } }
        guard others.count < inputs.count else { return }
        pendingStarts -= inputs.count - others.count
        inputs = others
        statuses.send(.failed(error))
        finishConnecting(.failure(error))
    }

    /// Makes the machine send what another chat of the same files has left in the outbox.
    private func takeOver() async {
        // A driver that releases its files in the background reads them anyway when it takes them back.
        guard !hasReleasedFiles else { return }
        mayHaveOrphanedOperations = true
        await drain()
    }

    private func readLeftovers() async throws {
        // An earlier report of the file, still to be handled, may leave an operation to the chat that is gone.
        let hasReport = inputs.contains { input in
            switch input {
            case .kept, .noted: true
            default: false
            }
        }
        guard mayHaveOrphanedOperations, !hasReport else { return }
        mayHaveOrphanedOperations = false
        guard !hasEnded else { return }
        do {
            let files = try await files()
            defer { files.store.signals.signal(.everything) }
            inputs.insert(.left(try await savedOutbox()), at: 0)
        } catch {
            mayHaveOrphanedOperations = true
            environment.logger.error("The outbox couldn't be read again.", metadata: ["error": "\(error)"])
            throw error
        }
    }

    /// Makes the machine learn what another chat of the same files has done with the outbox, before it decides by what it knows of that.
    private func readOutboxOfOthers() async {
        guard !hasReleasedFiles, inputs.contains(where: \.dependsOnOutbox), let files = try? await files(), files.isShared,
            // Without it, the machine continues from what it knows.
            let outbox = try? await savedOutbox()
        else { return }
        inputs.insert(.outboxRead(outbox), at: 0)
    }

    /// Makes the machine continue from what is stored, before it handles later inputs.
    func storeFailed(_ store: Store, _ reason: String) async {
        let saved = (try? await store.savedState()) ?? SavedState()
        let outbox = try? await savedOutbox()
        inputs.insert(.storeFailed(saved, outbox, reason), at: 0)
    }

    // MARK: Inputs

    /// Adds an input, and returns once it is handled, or if another caller handles it.
    func post(_ input: Sync.Input) async { await post([input]) }

    func post(_ new: [Sync.Input]) async {
        guard !hasEnded else { return }
        inputs += new
        await drain()
    }

    /// Adds an input without waiting.
    func submit(_ input: Sync.Input) {
        guard !hasEnded else { return }
        inputs.append(input)
        Task { await drain() }
    }

    /// Adds an event of a connection, and returns at once so that the transport keeps reading: what arrives while a batch is performed is the next
    /// batch. The transport waits only if very much has arrived.
    func receive(_ event: TransportEvent, of connection: Int64) async {
        guard !hasEnded else { return }
        if case .opened = event { inputs.append(.deviceTime(environment.now())) }
        inputs.append(.transport(connection, event))
        if case .closed = event {} else { lastHeard = environment.now() }
        if case .message(let bytes) = event {
            inputBytes += bytes.count
            upkeep.received(bytes.count)
        }
        if !isDraining { Task { await drain() } }
        while !hasEnded && (inputs.count >= Self.inputsMax.count || inputBytes >= Self.inputsMax.bytes) {
            await withCheckedContinuation { waitingTransports.append($0) }
        }
    }

    func drain() async {
        guard !isDraining, machine != nil else { return }
        isDraining = true
        // Not in the caller's task: it may be cancelled, and then nothing could be written.
        await Task { await handleInputs() }.value
    }

    private func handleInputs() async {
        // What can't be read is read at the next opportunity.
        var canRead = true
        while !inputs.isEmpty || damage != nil || canRead && (isReopened || mayHaveOrphanedOperations) {
            await replaceDamagedCache()
            do {
                try await readAgain()
                try await readLeftovers()
                canRead = true
            } catch {
                canRead = false
            }
            await readOutboxOfOthers()
            let batch = inputs
            inputs = []
            inputBytes = 0
            for transport in waitingTransports { transport.resume() }
            waitingTransports = []
            var outputs: [Sync.Output] = []
            if machine?.loads.isEmpty == false { outputs += machine?.handle(.showing(shownMessages.places)) ?? [] }
            for input in batch {
                // A timer that was restarted or cancelled since it ended is ignored.
                if case .timer(let timer) = input, !timers.takeEnded(timer) { continue }
                let next = machine?.handle(input) ?? []
                for output in next { timers.note(output) }
                outputs += next
            }
            // It was read for this batch. The others may change it before the next one.
            machine?.unknownRows = []
            await perform(outputs)
            signals.endWatches { machine?.wantsWatch(of: $0) ?? false }
            if pendingStops > 0 { pendingStops -= batch.count { if case .stop = $0 { true } else { false } } }
            if pendingStarts > 0 { pendingStarts -= batch.count { if case .start = $0 { true } else { false } } }
            await keepCacheSmall()
        }
        isDraining = false
        for waiting in waitingForRest { waiting.resume() }
        waitingForRest = []
        releaseFilesSoon()
    }

    /// Returns once no batch is in progress.
    func rest() async {
        while isDraining { await withCheckedContinuation { waitingForRest.append($0) } }
    }

    // MARK: Logging out

    /// Deletes the user's files. Such requests are handled one after another.
    func logOut(discardingUnsent: Bool, signingOutDevice: Bool) async throws {
        let previous = lastLogOut
        let task = Task {
            _ = await previous?.result
            try await erase(discardingUnsent: discardingUnsent, signingOutDevice: signingOutDevice)
        }
        lastLogOut = task
        try await task.value
    }

    private func erase(discardingUnsent: Bool, signingOutDevice: Bool) async throws {
        let files = try await files()
        if !hasEnded {
            isCheckingLogOut = true
            do {
                // Earlier requests are in the outbox; no later ones follow.
                await drain()
                await rest()
                guard !files.isShared else {
                    throw RoostError(.storageInUse, "Another chat of this process has this user's files open.")
                }
                // Nothing else may add to what is counted, such as an extension while the files are released.
                try files.requireFree()
                let count = discardingUnsent ? 0 : try await unsentCount(in: files.outbox)
                guard count == 0 else { throw UnsentOperations(count: count) }
            } catch {
                endCheck(isLoggingOut: false)
                if hasReleasedFiles { await files.suspend() }
                await releaseFilesInBackground()
                throw error
            }
            endCheck(isLoggingOut: true)
            if signingOutDevice { await signOut(files.device) }
            await end()
        }
        try await files.erase()
    }

    private func unsentCount(in outbox: Outbox) async throws -> Int {
        do {
            return try await outbox.unsentCount(except: pendingWrites.removed)
        } catch {
            throw RoostError(.storageFailed, "The outbox of this device can't be read: \(error)")
        }
    }

    private func endCheck(isLoggingOut: Bool) {
        (self.isLoggingOut, isCheckingLogOut) = (isLoggingOut, false)
        for waiting in waitingForCheck { waiting.resume() }
        waitingForCheck = []
    }

    /// Ends the connection and all waiting callers, permanently.
    private func end() async {
        await stop()
        await rest()
        hasEnded = true
        machine = nil
        inputs = []
        for transport in waitingTransports { transport.resume() }
        waitingTransports = []
        tokenFetch?.cancel()
        statuses.send(.offline)
        events.end()
        signals.end()
        failEverything(Self.loggedOut)
    }
}
