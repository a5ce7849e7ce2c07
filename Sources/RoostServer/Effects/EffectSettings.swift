package import RoostCore

/// Which effects a server runs, and how.
package struct EffectSettings: Sendable {
    /// Does what a kind does outside the database, and hands on what came of it. It can be called again for the same effect.
    package typealias Performer = @Sendable (Effect) async throws -> String

    package var kinds = EffectKinds.all
    /// Of the kinds that do something outside the database.
    package var performers: [EffectKind.Name: Performer] = [:]
    /// Effects that are under way at one time.
    package var underWayMax = 32
    /// How long a performer has. An effect that was taken is another's turn after twice that.
    package var performingTime = Duration.seconds(30)
    /// How often it is looked for what others have asked for, or a clock that was set has made due.
    package var lookInterval = Duration.seconds(1)
    /// After the database or the engine couldn't.
    package var retryAfter = Duration.milliseconds(500)

    package init() {}
}
