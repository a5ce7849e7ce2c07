import Foundation
import RoostServer

/// Checks whether a server starts with the settings, as far as no other check covers them.
struct SettingsCheck {
    let settings: Settings

    func findings() async -> [Finding] {
        let keys = await tokenKeys()
        return [keys, bus()].compactMap { $0 } + lowered()
    }

    private func lowered() -> [Finding] {
        settings.lowered.map { Finding("settings", .warn, $0.safe(), advice: "Set it to that, or to less") }
    }

    /// Nil without `token-keys`.
    private func tokenKeys() async -> Finding? {
        let configuration = settings.server
        guard let file = configuration.tokenKeys else { return nil }
        do {
            let names = try await TokenKeyFiles.examine(file, besides: configuration.dataDirectory)
            return Finding("further token keys", .ok, "\(file.path), \(names.joined(separator: ", "))".safe())
        } catch {
            return Finding(
                "further token keys", .fail, "\(error)".safe(),
                advice: "The server won't start with it: fix the file, or name another with --token-keys")
        }
    }

    /// Nil if there is nothing to report.
    private func bus() -> Finding? {
        do {
            try settings.server.requireDatabaseOfBus()
            return nil
        } catch {
            return Finding(
                "settings", .fail, "there is a bus, but no database that nodes share",
                advice: "The server won't start like this: name the nodes' database with --database, or leave --bus out")
        }
    }
}
