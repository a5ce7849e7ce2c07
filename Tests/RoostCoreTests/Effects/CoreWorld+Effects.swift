import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

extension CoreWorld {
    /// Runs the due effects of a kind, as the server does.
    ///
    /// - Returns: How many effects that were.
    @discardableResult
    func runEffects(of kind: EffectKind, reporting: ([Notice]) -> Void = { _ in }) throws -> Int {
        let due = try database.read { try $0.effectsDue(of: [kind.name], at: now, limit: 1000) }.due
        for effect in due {
            let notices = try inContext(scope: kind.scope(effect)) { context in
                let isDone = try context.finish(effect, as: kind)
                #expect(isDone)
                return context.notices
            }
            reporting(notices)
        }
        return due.count
    }
}
