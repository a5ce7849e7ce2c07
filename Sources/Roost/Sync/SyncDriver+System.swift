import RoostAPI

/// What happens to the app.
extension SyncDriver {
    /// Follows the app and the network, until the token is released.
    nonisolated func followSystem() -> ObservationToken {
        SystemEvents.follow { [weak self] event in await self?.take(event) }
    }

    func take(_ event: SystemEvents.Event) async {
        switch event {
        case .background: isInBackground = true
        case .foreground: isInBackground = false
        case .otherNetwork: break
        }
        switch event {
        case .otherNetwork: nudge()
        case .foreground: if suspended == nil { nudge() } else { await resume() }
        case .background: if environment.storage.isShared { await suspend() }
        }
    }

    /// Ends the connection, and lets go of the files when everything that is under way is written.
    func suspend() async {
        guard suspended == nil, opening != nil || startsUnderWay > 0, let files = try? await files() else { return }
        // What the machine is made of is read by then. A connection that was just asked for may not have come to that.
        if startsUnderWay > 0 { _ = try? await prepare() } else { _ = try? await preparation?.value }
        let isUnderWay = statuses.current.triesByItself || startsUnderWay > 0 && machine != nil
        suspended = Suspended(files: files, isUnderWay: isUnderWay, stopCount: stopCount + 1)
        await stop()
        await rest()
        // An app that connects in the background has taken them back.
        if suspended != nil { await files.suspend() }
    }

    /// Lets go again of files that were opened or taken back while the app is in the background, for a connection there: nobody else would before the system suspends
    /// the app.
    func releaseFilesInBackground() async {
        // Who logs out deletes them.
        guard isInBackground, environment.storage.isShared, !isLoggingOut, suspended == nil, opening != nil,
            let files = try? await files()
        else { return }
        await rest()
        // A connection may have been asked for meanwhile, or the app may be back.
        guard isInBackground, suspended == nil, startsUnderWay == 0, !statuses.current.triesByItself else { return }
        suspended = Suspended(files: files, isUnderWay: false, stopCount: stopCount)
        await files.suspend()
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
    }
}
