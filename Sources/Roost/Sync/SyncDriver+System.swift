import Foundation
import RoostAPI

/// What happens to the app.
///
/// An app that goes to the background is suspended soon: the connection ends, the files are let go of, and nothing is written until the app is back or connects.
/// An app that is in the background already, when its chat is made or once it has connected there, is running for a purpose: nothing that it asks for is ended or
/// refused. It has the files as long as it needs them, and lets go of them each time that they rest.
extension SyncDriver {
    /// Follows the app and the network, until the token is released.
    ///
    /// - Parameter question: Asks whether the app is in the background already.
    nonisolated func followSystem(
        _ center: NotificationCenter = .default, asking question: @escaping SystemEvents.Question = SystemEvents.isInBackground
    ) -> ObservationToken {
        // Files that aren't shared are kept in the background.
        SystemEvents.follow(center, asking: environment.storage.isShared ? question : nil) { [weak self] event in
            await self?.take(event)
        }
    }

    func take(_ event: SystemEvents.Event) async {
        switch event {
        case .foreground:
            isInBackground = false
            if suspended == nil { nudge() } else { await resume() }
        case .active:
            // Apps with scenes say that they are in the background while they are launched to the foreground, so this may be the first sign of that. But it also
            // follows each look at the control center and each call that was declined. Nothing has changed by these: a nudge would ping the server,
            // or try to connect before the wait is over.
            if isInBackground { await take(.foreground) }
        case .background:
            isInBackground = true
            if environment.storage.isShared { await suspend() }
        case .alreadyInBackground:
            isInBackground = true
            await releaseFilesInBackground()
        case .otherNetwork: nudge()
        }
    }

    /// Ends the connection, and lets go of the files when everything that is under way is written.
    func suspend() async {
        guard suspended == nil, opening != nil || startsUnderWay > 0, let files = try? await files() else { return }
        // What the machine is made of is read by then. A connection that was just asked for may not have come to that.
        if startsUnderWay > 0 { _ = try? await prepare() } else { _ = try? await preparation?.value }
        // Of a refusal the status doesn't say whether the machine goes on trying. What the app has ended may still be ending.
        let isTrying = machine.map { $0.phase != .idle || startsUnderWay > 0 } ?? false
        let isUnderWay = isTrying && stopCountAtStart == stopCount
        suspended = Suspended(files: files, isUnderWay: isUnderWay, stopCount: stopCount + 1, takesBackToWrite: false)
        // Writes that are under way are waited for by the gate of the files, which lets no new ones begin.
        await endConnection()
        await rest()
        // An app that connects in the background has taken them back.
        if suspended != nil { await files.suspend() }
    }

    /// Whether the app is in the background, and no connection needs the files that it shares, nor one that is asked for.
    private var isUnconnectedInBackground: Bool {
        guard isInBackground, environment.storage.isShared, opening != nil else { return false }
        // Who logs out deletes them.
        guard !isLoggingOut, !isCheckingLogOut, startsUnderWay == 0 else { return false }
        return machine.map { $0.phase == .idle } ?? true
    }

    /// Lets go of files that were opened or taken back while the app is in the background, or before it was known to be, once nothing needs them: nobody else
    /// would before the system suspends the app. Returns when they are let go of, or at once if there is a connection.
    func releaseFilesInBackground() async {
        guard isUnconnectedInBackground, let files = try? await files() else { return }
        // What the machine is made of is read by then, and what follows from that written.
        _ = try? await preparation?.value
        while writesUnderWay > 0 { await withCheckedContinuation { waitingForWrites.append($0) } }
        await rest()
        // Something may have begun meanwhile, or the app may be back. A write that has lets go of them itself.
        guard isUnconnectedInBackground, writesUnderWay == 0 else { return }
        if suspended == nil {
            suspended = Suspended(files: files, isUnderWay: false, stopCount: stopCount, takesBackToWrite: true)
        }
        // Also if another call has come first: that one may still wait for a write to end.
        await files.suspend()
    }

    /// The same where nobody waits for it: whatever may have been the last to need the files has ended.
    func releaseFilesSoon() {
        guard suspended == nil, writesUnderWay == 0, isUnconnectedInBackground else { return }
        Task { await releaseFilesInBackground() }
    }

    /// Does what the user has asked for and may have to be written. In the background the files are taken back for it if they rested, and have been let go of when
    /// this returns, since the app may be suspended then.
    func whileWriting<Value: Sendable>(_ write: () async throws -> Value) async rethrows -> Value {
        writesUnderWay += 1
        // If another process has them, nothing can be written, and the write says so.
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
        writesUnderWay -= 1
        // Several at a time take them back once: the last one lets go of them.
        guard writesUnderWay == 0 else { return }
        for waiting in waitingForWrites { waiting.resume() }
        waitingForWrites = []
        await releaseFilesInBackground()
    }

    /// Why there is no connection, as the beginning of a sentence.
    var disconnected: String {
        suspended == nil ? "The client was disconnected" : "The app went to the background"
    }

    /// Takes the files back, and connects if there was a connection, or an attempt at one, and the app hasn't disconnected since. If another
    /// process has the files now, that is the status.
    func resume() async {
        let before = suspended
        do {
            try takeFilesBack()
            if let before, before.isUnderWay, before.stopCount == stopCount {
                try await start(since: before.stopCount)
            } else {
                await drain()
            }
        } catch {
            let error = error as? RoostError ?? RoostError(.unavailable, "The files of this device can't be opened: \(error)")
            statuses.send(.failed(error))
        }
    }

    /// Takes the files back if they were let go of, and has the machine read them again.
    ///
    /// - Throws: `RoostError` with `unavailable` if another process has them, or has deleted them.
    func takeFilesBack() throws {
        guard let suspended else { return }
        try suspended.files.resume()
        self.suspended = nil
        isReopened = true
        // Live objects are told once the machine has read the files. If there is none, nobody else tells them.
        if machine == nil { suspended.files.store.signals.signal(.everything) }
    }
}
