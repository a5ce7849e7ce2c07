import RoostAPI

/// Queries to the other nodes that are answered with users. Each is open until all have answered or its deadline has passed. A value; times
/// are in milliseconds.
struct NodeQueries {
    /// A finished query: the users that each node has named, and the closure that takes them.
    struct Answer {
        let users: [NodeID: [UserID]]
        let run: @Sendable ([NodeID: [UserID]]) -> Void
    }

    /// Which users may be named in an answer: anyone may send one over the bus.
    enum Expected {
        case someOf(Set<UserID>)
        case any(atMost: Int)
    }

    private struct Query {
        let expected: Expected
        var missing: Set<NodeID>
        let deadline: Int64
        var found: [NodeID: [UserID]] = [:]
        let run: @Sendable ([NodeID: [UserID]]) -> Void

        var answer: Answer { Answer(users: found, run: run) }
    }

    /// The most open queries, and the most of those that may be answered with many users.
    static let openMax = 10_000
    static let largeOpenMax = 100
    private var open: [Int64: Query] = [:]
    private var largeOpen: Int { open.values.count { if case .any = $0.expected { true } else { false } } }
    private var last: Int64 = 0

    /// - Returns: The query's number; nil while too many are open.
    mutating func ask(
        _ nodes: Set<NodeID>, expecting expected: Expected, deadline: Int64, run: @escaping @Sendable ([NodeID: [UserID]]) -> Void
    ) -> Int64? {
        guard open.count < Self.openMax else { return nil }
        if case .any = expected {
            guard largeOpen < Self.largeOpenMax else { return nil }
        }
        last += 1
        open[last] = Query(expected: expected, missing: nodes, deadline: deadline, run: run)
        return last
    }

    /// Takes a node's answer. Users that weren't asked about are ignored.
    mutating func heard(_ users: [UserID], to query: Int64, from node: NodeID) -> Answer? {
        guard let expected = open[query]?.expected, open[query]?.missing.remove(node) != nil else { return nil }
        switch expected {
        case .someOf(let asked): open[query]?.found[node] = users.filter(asked.contains)
        case .any(let most): open[query]?.found[node] = Array(users.prefix(most))
        }
        return takeIfAnswered(query)
    }

    /// Stops waiting for a node.
    mutating func forget(_ node: NodeID) -> [Answer] {
        open.keys.sorted().compactMap { query in
            open[query]?.missing.remove(node)
            return takeIfAnswered(query)
        }
    }

    mutating func takeOverdue(at now: Int64) -> [Answer] {
        guard !open.isEmpty else { return [] }
        let overdue = open.filter { $0.value.deadline <= now }
        for query in overdue.keys { open[query] = nil }
        return overdue.values.map(\.answer)
    }

    private mutating func takeIfAnswered(_ query: Int64) -> Answer? {
        guard let asked = open[query], asked.missing.isEmpty else { return nil }
        open[query] = nil
        return asked.answer
    }
}
