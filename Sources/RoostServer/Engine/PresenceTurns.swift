/// The order of a connection's operations in one channel while one of them waits for presence.
///
/// An operation whose answer contains presence is queued once that is collected. Those of the same connection and channel that arrive meanwhile wait
/// for it, since they run in the order of arrival. As a value without a lock and threads it is tested by itself.
struct PresenceTurns {
    /// The operations that wait. A turn has a list, even an empty one, while presence is being collected for an operation of it.
    private var waiting: [Job.Turn: [Job]] = [:]

    /// Takes an operation if one of its turn is waiting for presence. Otherwise its own presence, if its answer contains any, is to be collected now,
    /// and the operations after it wait for that.
    ///
    /// - Returns: Whether it was taken: ``next(in:)`` returns it in its turn.
    mutating func mustWait(_ job: Job) -> Bool {
        guard !waiting.isEmpty || job.presenceChannel != nil, let turn = job.turn else { return false }
        guard waiting[turn] == nil else {
            waiting[turn]?.append(job)
            return true
        }
        if job.presenceChannel != nil { waiting[turn] = [] }
        return false
    }

    /// Returns the operation that is to continue once the one before it is queued. If its own answer contains presence, that is collected first.
    ///
    /// - Returns: Nil if no operation waits any more. The turn has then ended.
    mutating func next(in turn: Job.Turn) -> Job? {
        guard waiting[turn]?.isEmpty == false else {
            waiting[turn] = nil
            return nil
        }
        return waiting[turn]?.removeFirst()
    }
}
