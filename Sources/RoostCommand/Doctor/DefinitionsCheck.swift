import Foundation
import RoostServer

/// Checks whether the file with channel types and roles can be used, if the settings name one.
struct DefinitionsCheck {
    let settings: Settings

    func findings() -> [Finding] {
        guard let file = settings.server.channelTypes else { return [] }
        do {
            try Definitions.examine(file: file)
            return [Finding("channel types", .ok, "\(file.path) can be used")]
        } catch {
            return [
                Finding(
                    "channel types", .fail, "\(error)".safe(), advice: "The server won't start with it: fix the file")
            ]
        }
    }
}
