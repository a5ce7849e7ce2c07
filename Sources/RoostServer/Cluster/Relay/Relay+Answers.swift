import RoostAPI
import RoostCore

/// Queued answers, each of which is sent after the events of its operation.
///
/// 1. An answer waits until every event of its operation has been delivered on this node, and until the caller's attachment to the channel,
///    if one is under way, has passed them: a user who has just joined gets their own message before its reply. It also waits until the
///    caller's own stream here has reached the membership that the operation relied on, which another node may have written.
/// 2. The answers of one connection in one channel go out in the order in which the operations ran, whatever each of them waits for. Answers
///    in different channels don't wait for one another.
/// 3. Watching begins and ends with its answer: no event of the channel precedes the answer that says at which position it begins.
struct AnswerQueue {
    enum Key: Hashable {
        case channel(ConnectionID, ChannelID)
        case connection(ConnectionID)
        /// A caller over HTTP, waiting for one answer.
        case waiter(Int64)

        var connection: ConnectionID? {
            switch self {
            case .channel(let connection, _), .connection(let connection): connection
            case .waiter: nil
            }
        }
    }

    struct Held {
        /// The committed operation, whose items the answer waits for.
        let operation: Relay.LocalOperation
        /// Streams whose items are no longer waited for, since the database doesn't have them.
        var givenUp: Set<StreamID> = []
    }

    var held: [Held]
    /// The stream that the first answer waits for.
    var waitsFor: StreamID?
}

extension Relay {
    /// Takes an operation that a lane of this node has committed.
    mutating func accept(_ operation: LocalOperation) {
        for notice in operation.attachments {
            if case .connected(let connection, let user, let streams) = notice {
                for item in operation.items { accept(item) }
                return connect(Connect(connection: connection, user: user, streams: streams, answer: operation.answer))
            }
        }
        let key = key(of: operation)
        // The common case: nothing is queued before it, and it waits for nothing.
        if answers[key] == nil, operation.items.allSatisfy({ feeds[$0.stream].map { $0.isLive && $0.waiting.isEmpty } ?? true }) {
            for item in operation.items { accept(item) }
            let held = AnswerQueue.Held(operation: operation)
            guard let place = missing(for: held, of: key.connection) else { return give(held) }
            answers[key] = AnswerQueue(held: [held])
            return wait(key, for: place)
        }
        answers[key, default: AnswerQueue(held: [])].held.append(AnswerQueue.Held(operation: operation))
        // Checked before the items too, so the answer comes right after the last of them.
        proceed(key)
        for item in operation.items { accept(item) }
        proceed(key)
    }

    private mutating func key(of operation: LocalOperation) -> AnswerQueue.Key {
        switch (operation.answer, operation.channel) {
        case (.socket(let socket, _), let channel?): .channel(socket.connection, channel)
        case (.socket(let socket, _), nil): .connection(socket.connection)
        case (.waiting, _): .waiter(nextToken())
        }
    }

    /// Returns the first place in a stream that the caller has yet to reach.
    private func missing(for held: AnswerQueue.Held, of connection: ConnectionID?) -> (stream: StreamID, seq: Seq)? {
        let operation = held.operation
        if let user = operation.user, operation.callerSeq > 0 {
            let place = (stream: StreamID.user(user), seq: operation.callerSeq)
            if isMissing(place, for: held, of: connection) { return place }
        }
        return operation.items.lazy.map { ($0.stream, $0.seq) }.first { isMissing($0, for: held, of: connection) }
    }

    private func isMissing(_ place: (stream: StreamID, seq: Seq), for held: AnswerQueue.Held, of connection: ConnectionID?) -> Bool
    {
        guard let feed = feeds[place.stream], !feed.isUnreadable, !held.givenUp.contains(place.stream) else { return false }
        guard feed.isLive, !feed.isPartlyRead, feed.position >= place.seq else { return true }
        guard let user = held.operation.user, feed.attaching.contains(user) else { return false }
        return feed.isCatchingUp(user, connection, from: place.seq)
    }

    private mutating func give(_ held: AnswerQueue.Held) {
        for case .watching(let connection, let user, let channel, let seq, let online) in held.operation.attachments {
            emit(.watches(connection, user, channel, at: seq, online: online))
        }
        emit(.answer(held.operation.answer))
        for notice in held.operation.attachments { attach(notice) }
    }

    /// Emits the answers of a queue that are due.
    private mutating func proceed(_ key: AnswerQueue.Key) {
        while let first = answers[key]?.held.first {
            if let place = missing(for: first, of: key.connection) { return wait(key, for: place) }
            answers[key]?.held.removeFirst()
            if answers[key]?.held.isEmpty == true { forget(key) }
            give(first)
        }
    }

    private mutating func wait(_ key: AnswerQueue.Key, for place: (stream: StreamID, seq: Seq)) {
        // Another node's commit may never be announced.
        if let feed = feeds[place.stream], feed.isLive, feed.position < place.seq { noteGap(place.stream, head: place.seq) }
        guard answers[key]?.waitsFor != place.stream else { return }
        stopWaiting(key)
        answers[key]?.waitsFor = place.stream
        waitingAnswers[place.stream, default: []].append(key)
    }

    private mutating func stopWaiting(_ key: AnswerQueue.Key) {
        guard let stream = answers[key]?.waitsFor else { return }
        waitingAnswers[stream]?.removeAll { $0 == key }
        if waitingAnswers[stream]?.isEmpty == true { waitingAnswers[stream] = nil }
        answers[key]?.waitsFor = nil
    }

    private mutating func forget(_ key: AnswerQueue.Key) {
        stopWaiting(key)
        answers[key] = nil
    }

    /// Emits answers after a stream has moved on or a receiver was attached to it.
    mutating func giveAnswers(waitingFor stream: StreamID) {
        guard let keys = waitingAnswers.removeValue(forKey: stream) else { return }
        for key in keys { answers[key]?.waitsFor = nil }
        for key in keys { proceed(key) }
    }

    /// Stops waiting for items of a stream that aren't in the database.
    mutating func giveUpWaiting(for stream: StreamID) {
        for key in answers.keys {
            for place in answers[key]?.held.indices ?? 0..<0 { answers[key]?.held[place].givenUp.insert(stream) }
        }
        giveAnswers(waitingFor: stream)
    }
}
