import RoostAPI
import RoostTestSupport
import Testing

/// Calls of which a user may make ``Limits/signalsPerSecond``.
extension RawSocket {
    /// Makes the calls of one burst after another, each burst at once, until some of a burst are refused. A busy machine may take seconds for a burst, and
    /// each second has room for some calls.
    ///
    /// - Returns: The refusal of each call made; nil for one that was carried out. There is at least one refusal.
    func refusals(inBursts bursts: [[some RoostAPI.Operation]]) async throws -> [RoostError?] {
        var all: [RoostError?] = []
        for burst in bursts {
            let start = ContinuousClock.now
            let answers = try await refusals(of: burst)
            // The server's seconds begin at any moment of a burst: one that takes less than a second may reach into two.
            let secondsMax = Int((ContinuousClock.now - start) / .seconds(1)) + 2
            #expect(answers.count(where: { $0 == nil }) <= secondsMax * Limits.signalsPerSecond)
            all += answers
            if answers.contains(where: { $0 != nil }) { return all }
        }
        throw Missed("a refusal of any of \(all.count) calls")
    }

    /// The same with identical bursts.
    func refusals(inBurstsOf calls: [some RoostAPI.Operation]) async throws -> [RoostError?] {
        try await refusals(inBursts: Array(repeating: calls, count: 20))
    }
}
