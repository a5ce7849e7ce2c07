public import RoostAPI

extension GetMyChanges: Handled {
    public func handle(in context: inout Context) throws -> Changes {
        try context.require(.streamRead)
        var changes = try context.myChanges(after: after, limit: try Limits.page(limit, Limits.changesPage))
        changes.users = try context.summaries(for: [changes.rows])
        return changes
    }
}

extension Context {
    /// Returns the caller's own rows that changed after a position of the caller's stream.
    func myChanges(after: Seq, limit: Int) throws -> Changes {
        let user = caller.user
        let head = try transaction.streamHead(of: user)
        guard after <= head else {
            throw RoostError(
                .resyncRequired, "Your stream ends at \(head): discard what you have and start over.", field: "after", limit: head)
        }
        let changed = try changedRows(for: user, after: after, limit: limit)
        let upTo = min(changed.upTo ?? .max, head)
        return Changes(stream: .user(user), rows: changed.rows(upTo: upTo), seq: upTo, hasMore: upTo < head)
    }
}
