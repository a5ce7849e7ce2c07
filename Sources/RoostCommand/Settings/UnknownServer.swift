import ArgumentParser

/// A setting whose value isn't the URL of a database or a bus that Roost knows.
///
/// Nothing of the value is repeated: it may hold a secret anywhere.
struct UnknownServer {
    private let entry: Settings.Entry
    private let expected: String

    /// Nil for a value that is the default or begins like the URL of such a server, and for other settings.
    init?(_ entry: Settings.Entry) {
        let schemes: [String]
        switch entry.setting.name {
        case Setting.database.name:
            (schemes, expected) = (["postgres://", "postgresql://"], "sqlite or like postgres://user@host/name")
        case Setting.bus.name: (schemes, expected) = (["nats://", "tls://"], "none or like nats://host:4222")
        default: return nil
        }
        guard entry.value != entry.setting.standard, case .text(let text) = entry.value else { return nil }
        let start = text.drop(while: \.isWhitespace)
        guard !schemes.contains(where: { start.hasPrefix($0) }) else { return nil }
        self.entry = entry
    }

    var setting: String { entry.setting.name }

    /// A sentence without its full stop.
    var requirement: String { "\(setting) must be \(expected) (from \(entry.origin))" }

    /// The warning shown with the setting.
    var warning: String {
        let isHidden = "\(entry.shown)" == "…"
        return "\(requirement). No server will start with this value"
            + (isHidden ? ", which is shown as … because it may hold a secret." : ".")
    }

    /// For a flag it is a usage error, with its exit code.
    var refusal: any Error {
        if case .flag = entry.origin { return ValidationError("\(requirement).") }
        return Failure("\(requirement).")
    }
}

extension Settings {
    /// The settings for a database or a bus with an unknown form. Commands that need neither aren't stopped by them.
    var unknownServers: [UnknownServer] { all.compactMap { UnknownServer($0) } }

    /// - Throws: A ``Failure``, or for a flag a `ValidationError`, that names the setting and its source.
    func requireKnownServers() throws {
        if let unknown = unknownServers.first { throw unknown.refusal }
    }
}
