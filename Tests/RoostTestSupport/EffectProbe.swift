import RoostAPI
package import RoostCore
package import RoostServer
import Synchronization

/// Two kinds of effects for tests: one that only writes to the database, and one that does something outside of it before.
///
/// Each completed effect writes a row that can't be written twice: an effect that completes twice fails, and is dead in the end.
package final class EffectProbe: Sendable {
    package static let inside = EffectKind.Name(rawValue: "test.inside")
    package static let outside = EffectKind.Name(rawValue: "test.outside")

    private let performed = Mutex<[String: Int]>([:])
    private let failures = Mutex<[String: Int]>([:])
    private let hanging = Mutex<Set<String>>([])

    package init() {}

    /// How often the outside part of each effect was started.
    package var performedCounts: [String: Int] { performed.withLock { $0 } }

    /// The next attempts of an effect fail.
    package func fail(_ key: String, times: Int) { failures.withLock { $0[key] = times } }

    /// The next attempt of an effect waits forever.
    package func hang(_ key: String) { hanging.withLock { _ = $0.insert(key) } }

    package var settings: EffectSettings {
        var settings = EffectSettings()
        settings.kinds += [Self.kind(Self.inside), Self.kind(Self.outside)]
        settings.performers = [Self.outside: { [self] in try await perform($0) }]
        settings.pollInterval = .milliseconds(200)
        settings.retryAfter = .milliseconds(50)
        return settings
    }

    private static func kind(_ name: EffectKind.Name) -> EffectKind {
        EffectKind(name, attemptsMax: 2) { effect, outcome, context in
            if effect.key == "refused" { throw RoostError(.unavailable, "Not now.", retryAfterMilliseconds: 10) }
            try context.transaction.execute(
                "INSERT INTO settings (name, value) VALUES (\("done." + effect.kind.rawValue + "." + effect.key), \(outcome))")
        }
    }

    private func perform(_ effect: Effect) async throws -> String {
        performed.withLock { $0[effect.key, default: 0] += 1 }
        let hangs = hanging.withLock { $0.remove(effect.key) != nil }
        if hangs { try await Task.sleep(for: .seconds(600)) }
        let fails = failures.withLock { failures in
            guard let left = failures[effect.key], left > 0 else { return false }
            failures[effect.key] = left - 1
            return true
        }
        if fails { throw RoostError(.unavailable, "The other side isn't there.") }
        return "performed"
    }

    /// The keys of the completed effects of a kind, according to the database.
    package static func ended(_ kind: EffectKind.Name, in transaction: any Transaction) throws -> Set<String> {
        let prefix = "done.\(kind.rawValue)."
        let names = try transaction.rows("SELECT name FROM settings WHERE name LIKE \(prefix + "%")") { $0.string() }
        return Set(names.map { String($0.dropFirst(prefix.count)) })
    }
}
