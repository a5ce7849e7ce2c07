public import RoostAPI

extension ListDeadEffects: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<DeadEffect> {
        try context.require(.effectManage)
        let walk = try Walk(self, shape: [.integer, .text, .text], limits: Limits.effectPage, isDescending: true)
        let columns: [SQL] = ["dead_at", "kind", "effect_key"]
        let transaction = context.transaction
        return try walk.page(through: [
            { page in
                let sql: SQL = """
                    SELECT kind, effect_key, attempts, failure, dead_at FROM effects
                    WHERE dead_at IS NOT NULL\(page.condition(on: columns))
                    ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                    """
                return try transaction.rows(sql) { row in
                    let effect = DeadEffect(reading: &row)
                    return Walk.Entry(
                        place: [.integer(effect.deadAt.milliseconds), .text(effect.kind), .text(effect.key)], row: effect)
                }
            }
        ]) { $0 }
    }
}

extension DeadEffect: ContentSized {
    fileprivate init(reading row: inout RowReader) {
        self.init(
            kind: row.string(), key: row.string(), attempts: row.int(),
            // The text after the code is the failure's own message, and stays in the log.
            failureCode: String((row.optionalString() ?? "unknown").prefix { $0 != ":" }), deadAt: row.timestamp())
    }

    var contentSizeBytes: Int { JSONBytes.sizeBytes(of: kind) + JSONBytes.sizeBytes(of: key) + 200 }
}

extension RetryEffect: Handled {
    public func handle(in context: inout Context) throws -> Done {
        try context.require(.effectManage)
        guard try context.retryEffect(kind: kind, key: key) else {
            throw RoostError.notFound("effect", field: "key")
        }
        return Done()
    }
}
