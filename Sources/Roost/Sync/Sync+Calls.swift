import RoostAPI

extension Sync {
    /// Who a call was made for.
    enum Purpose: Hashable, Sendable {
        /// The app. Replies that bring a channel, those to join and create, make it one that is followed.
        case app(CallToken, bringsChannel: Bool)
        case resume
        case send(MessageKey)
        case history(ChannelID)
    }

    mutating func call(_ operation: any Operation, for token: CallToken) {
        guard isAuthenticated else {
            return emit(.reply(token, .failure(RoostError(.notConnected, "There is no connection to the server."))))
        }
        send(operation, for: .app(token, bringsChannel: operation is JoinChannel || operation is CreateChannel))
    }

    mutating func cancel(_ token: CallToken) {
        for (channel, load) in loads where load.waiting.contains(token) {
            // The page is stored when it comes; only nobody waits for it any more.
            loads[channel]?.waiting.removeAll { $0 == token }
        }
        for (number, purpose) in calls {
            guard case .app(token, _) = purpose else { continue }
            calls[number] = nil
            emit(.cancelTimer(.call(number)))
        }
        emit(.reply(token, .failure(RoostError(.notConnected, "The call was cancelled."))))
    }

    /// Writes a call and remembers whom its reply is for.
    mutating func send(_ operation: any Operation, for purpose: Purpose) {
        lastCall += 1
        do {
            let frame = try Self.frame(operation, number: lastCall)
            calls[lastCall] = purpose
            emit(.send(frame))
            emit(.startTimer(.call(lastCall), settings.callTimeout))
        } catch {
            let refusal = RoostError(.invalidArgument, "The call can't be written as JSON: \(error)")
            finish(purpose, with: .failure(refusal))
        }
    }

    private static func frame<Call: Operation>(_ operation: Call, number: Int64) throws -> [UInt8] {
        try JSONWriter.bytes(of: CallFrame(call: number, with: operation))
    }

    mutating func reply(_ number: Int64, _ error: RoostError?, _ bytes: [UInt8]) {
        // A reply without a caller came too late: its call timed out or was cancelled.
        guard let purpose = calls.removeValue(forKey: number) else { return }
        emit(.cancelTimer(.call(number)))
        finish(purpose, with: error.map(Result.failure) ?? .success(bytes))
    }

    mutating func callTimedOut(_ number: Int64) {
        guard let purpose = calls.removeValue(forKey: number) else { return }
        finish(purpose, with: .failure(RoostError(.unavailable, "The server gave no answer within \(settings.callTimeout).")))
    }

    private mutating func finish(_ purpose: Purpose, with result: Result<[UInt8], RoostError>) {
        switch (purpose, result) {
        case (.app(let token, let bringsChannel), _):
            if bringsChannel, case .success(let bytes) = result { channelArrived(bytes) }
            emit(.reply(token, result))
        case (.resume, .success(let bytes)): resumed(bytes)
        case (.resume, .failure(let error)): resumeFailed(error)
        case (.send(let key), _): sendFinished(key, result)
        case (.history(let channel), _): pageArrived(in: channel, result)
        }
    }

    /// While catching up, the answer to the resume or a held event brings the channel anyway, at the moment that fits the other
    /// streams.
    private mutating func channelArrived(_ bytes: [UInt8]) {
        guard phase == .online, let view = try? ReplyResult<ChannelView>.decode(bytes), let membership = view.membership,
            membership.state == .member
        else { return }
        let writes = adopt(view.channel, lastMessage: view.lastMessage)
        guard !writes.isEmpty else { return }
        emit(.store(writes + [.membership(membership)]))
    }

    /// Answers every caller of a connection that is gone.
    mutating func failCalls(_ error: RoostError) {
        for (number, purpose) in calls.sorted(by: { $0.key < $1.key }) {
            emit(.cancelTimer(.call(number)))
            if case .app(let token, _) = purpose { emit(.reply(token, .failure(error))) }
        }
        calls = [:]
        for load in loads.values {
            for token in load.waiting { emit(.reply(token, .failure(error))) }
        }
        loads = [:]
    }
}
