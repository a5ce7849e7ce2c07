import Foundation
import RoostAPI

/// Reactions to events of the app.
///
/// An app that moves to the background is suspended soon: the connection ends, and with it what the server believes that the user sees. Files that are
/// shared are released, and nothing is written to them until the app is back or connects. An app that is already in the background when its chat is
/// created, or that has connected there, is running for a purpose: none of its requests is ended or refused. It has shared files as long as it needs
/// them, and releases them whenever they are idle.
extension SyncDriver {
    /// Follows the app and the network, until the token is released.
    ///
    /// - Parameter check: Finds out whether the app is already in the background.
    nonisolated func followSystem(
        _ center: NotificationCenter = .default,
        checking check: @escaping SystemEvents.BackgroundCheck = SystemEvents.isInBackground
    ) -> ObservationToken {
        // Whatever the storage is: nobody sees what arrives in the background, and no notification reports that the app was launched there.
        SystemEvents.follow(center, checking: check) { [weak self] event in await self?.take(event) }
    }

    func take(_ event: SystemEvents.Event) async {
        switch event {
        case .foreground:
            note(isInBackground: false)
            if suspended == nil { nudge() } else { await resume() }
        case .active:
            // Apps with scenes report that they are in the background while they are launched to the foreground, so this may be the first sign of
            // that. But it also follows each look at the control center and each declined call. These change nothing: a nudge would ping the server,
            // or try to connect before the wait is over.
            if isInBackground { await take(.foreground) }
        case .background:
            note(isInBackground: true)
            await suspend()
        case .alreadyInBackground:
            note(isInBackground: true)
            await releaseFilesInBackground()
        case .otherNetwork: nudge()
        }
    }

    private func note(isInBackground: Bool) {
        self.isInBackground = isInBackground
        // One that is created later begins with it.
        if machine != nil { submit(isInBackground ? .pauseReading : .continueReading) }
    }

    /// Ends the connection, and releases shared files once everything in progress is written. Calls whose answers haven't arrived fail, and the outbox
    /// keeps what isn't acknowledged.
    func suspend() async {
        guard suspended == nil, opening != nil || pendingStarts > 0, let files = try? await files() else { return }
        // What the machine is created from is read by then. A connection that was just requested may not have got that far.
        if pendingStarts > 0 { _ = try? await prepare() } else { _ = try? await preparation?.value }
        // After a refusal, the status doesn't say whether the machine keeps trying. What the app has ended may still be ending.
        let isTrying = machine.map { $0.phase != .idle || pendingStarts > 0 } ?? false
        let reconnects = isTrying && stopCountAtStart == stopCount
        let isShared = environment.storage.isShared
        guard isShared || reconnects else { return }
        suspended = Suspended(
            files: isShared ? files : nil, reconnects: reconnects, stopCount: stopCount + 1, takesBackToWrite: false)
        // Without a connection, the status may say why there is none: it stays.
        if isTrying || pendingStops > 0 {
            holdUntilClosed()
            await endConnection()
        }
        guard isShared else { return }
        await rest()
        // The gate of the files waits for writes in progress, and lets no new ones begin.
        // An app that connects in the background has taken them back.
        if suspended != nil { await files.suspend() }
    }

    /// Keeps the system from suspending the process until the connection that is about to end is closed: until the server learns of the end, the user
    /// counts as connected, and gets no pushes. A server that doesn't answer is given a few seconds.
    private func holdUntilClosed() {
        guard let connection else { return }
        let release = SystemEvents.hold()
        Task {
            await connection.value
            release()
        }
    }

    /// Whether the app is in the background, and no connection, existing or requested, needs the files that it shares.
    private var isUnconnectedInBackground: Bool {
        guard isInBackground, environment.storage.isShared, opening != nil else { return false }
        // A log-out deletes them.
        guard !isLoggingOut, !isCheckingLogOut, pendingStarts == 0 else { return false }
        return machine.map { $0.phase == .idle } ?? true
    }

    /// Releases files that were opened or taken back while the app is in the background, or before that was known, once nothing needs them: nothing
    /// else would do so before the system suspends the app. Returns once they are released, or at once if there is a connection.
    func releaseFilesInBackground() async {
        guard isUnconnectedInBackground, let files = try? await files() else { return }
        // What the machine is created from is read by then, and the resulting writes are made.
        _ = try? await preparation?.value
        while activeWrites > 0 { await withCheckedContinuation { waitingForWrites.append($0) } }
        await rest()
        // Something may have begun meanwhile, or the app may be back. A write that has begun releases them itself.
        guard isUnconnectedInBackground, activeWrites == 0 else { return }
        if suspended == nil {
            suspended = Suspended(files: files, reconnects: false, stopCount: stopCount, takesBackToWrite: true)
        }
        // Also if another call got here first: it may still wait for a write to end.
        await files.suspend()
    }

    /// The same without waiting: what may have been the last to need the files has ended.
    func releaseFilesSoon() {
        guard suspended == nil, activeWrites == 0, isUnconnectedInBackground else { return }
        Task { await releaseFilesInBackground() }
    }

    /// Performs a request of the user that may have to be written. In the background, the files are taken back for it if they were released as idle,
    /// and are released again when this returns, because the app may be suspended then.
    func whileWriting<Value: Sendable>(_ write: () async throws -> Value) async rethrows -> Value {
        activeWrites += 1
        // If another process has them, nothing can be written, and the write reports that.
        if suspended?.takesBackToWrite == true { try? takeFilesBack() }
        do {
            let value = try await write()
            await endWriting()
            return value
        } catch {
            await endWriting()
            throw error
        }
    }

    private func endWriting() async {
        activeWrites -= 1
        // Concurrent writes take them back once: the last one releases them.
        guard activeWrites == 0 else { return }
        for waiting in waitingForWrites { waiting.resume() }
        waitingForWrites = []
        await releaseFilesInBackground()
    }

    /// Why there is no connection, as the beginning of a sentence.
    var disconnected: String {
        suspended == nil ? "The client was disconnected" : "The app went to the background"
    }

    /// Takes the files back, and connects if there was a connection or an attempt at one and the app hasn't disconnected since. If another process
    /// has the files now, that becomes the status.
    func resume() async {
        let before = suspended
        do {
            try takeFilesBack()
            if let before, before.reconnects, before.stopCount == stopCount {
                try await start(since: before.stopCount)
            } else {
                await drain()
            }
        } catch {
            let error = error as? RoostError ?? RoostError(.storageFailed, "The files of this device can't be opened: \(error)")
            statuses.send(.failed(error))
        }
    }

    /// Takes the files back if they were released, and makes the machine read them again.
    ///
    /// - Throws: `RoostError` with `storage_in_use` if another process has them, and with `storage_gone` if one has deleted them.
    func takeFilesBack() throws {
        guard let suspended else { return }
        try suspended.files?.resume()
        self.suspended = nil
        guard let files = suspended.files else { return }
        isReopened = true
        // Live objects are notified once the machine has read the files. Without a machine, nothing else notifies them.
        if machine == nil { files.store.signals.signal(.everything) }
    }
}
