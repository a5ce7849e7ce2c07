import RoostAPI

/// Questions to the other nodes of who is connected there, until all have answered or the time for that is over. A value; times are milliseconds.
struct ConnectedQuestions {
    /// A question that is over: what it was asked for, and who is connected elsewhere.
    struct Answer {
        let users: Set<UserID>
        let run: @Sendable (Set<UserID>) -> Void
    }

    private struct Question {
        let asked: Set<UserID>
        var missing: Set<NodeID>
        let deadline: Int64
        var found: Set<UserID> = []
        let run: @Sendable (Set<UserID>) -> Void

        var answer: Answer { Answer(users: found, run: run) }
    }

    /// How many may wait.
    static let openMax = 10_000
    private var open: [Int64: Question] = [:]
    private var last: Int64 = 0

    var isFull: Bool { open.count >= Self.openMax }

    /// - Returns: The question's number.
    mutating func ask(
        _ users: [UserID], of nodes: Set<NodeID>, deadline: Int64, run: @escaping @Sendable (Set<UserID>) -> Void
    ) -> Int64 {
        last += 1
        open[last] = Question(asked: Set(users), missing: nodes, deadline: deadline, run: run)
        return last
    }

    /// Takes a node's answer. Users whom nobody asked for are none.
    mutating func heard(_ users: [UserID], to question: Int64, from node: NodeID) -> Answer? {
        guard open[question]?.missing.remove(node) != nil else { return nil }
        for user in users where open[question]?.asked.contains(user) == true { open[question]?.found.insert(user) }
        return takeIfAnswered(question)
    }

    /// Waits for a node no longer.
    mutating func forget(_ node: NodeID) -> [Answer] {
        open.keys.sorted().compactMap { question in
            open[question]?.missing.remove(node)
            return takeIfAnswered(question)
        }
    }

    mutating func takeOverdue(at now: Int64) -> [Answer] {
        guard !open.isEmpty else { return [] }
        let overdue = open.filter { $0.value.deadline <= now }
        for question in overdue.keys { open[question] = nil }
        return overdue.values.map(\.answer)
    }

    private mutating func takeIfAnswered(_ question: Int64) -> Answer? {
        guard let asked = open[question], asked.missing.isEmpty else { return nil }
        open[question] = nil
        return asked.answer
    }
}
