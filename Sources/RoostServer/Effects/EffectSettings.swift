package import RoostCore

/// Which effects a server runs, and how.
package struct EffectSettings: Sendable {
    /// Does a kind's work outside the database, and returns its result. It may be called again for the same effect.
    package typealias Performer = @Sendable (Effect) async throws -> String

    package var kinds = EffectKinds.all
    /// The performers of kinds with work outside the database.
    package var performers: [EffectKind.Name: Performer] = [:]
    /// The most effects under way at one time.
    package var inFlightMax = 32
    /// The most effects of one kind with a performer under way at one time.
    package var performedMax = 16
    /// The time limit of a performer. A lease lasts twice that, at most ``EffectKind/leaseSecondsMax``.
    package var performingTime = Duration.seconds(EffectKind.leaseSecondsMax / 2)
    /// How often to look for effects that other nodes committed, or that became due by a clock change.
    package var pollInterval = Duration.seconds(1)
    /// The pause after a failure of the database or the engine.
    package var retryAfter = Duration.milliseconds(500)

    package init() {}
}
