import Foundation
import RoostServer

/// Whether the file with channel types and roles can be used, where the settings name one.
struct DefinitionsCheck {
    let settings: Settings

    func findings() -> [Finding] {
        guard let file = settings.server.channelTypes else { return [] }
        do {
            try Definitions.examine(file: file)
            return [Finding("channel types", .ok, "\(file.path) can be used")]
        } catch {
            let found = "\(error)".safe()
            return [
                Finding(
                    "channel types", .fail, found.hasSuffix(".") ? String(found.dropLast()) : found,
                    advice: "The server doesn't start with it: fix the file")
            ]
        }
    }
}
