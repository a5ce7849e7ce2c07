import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// The id of this device, in a file beside the cache and the outbox: it is created once and deleted with them.
enum DeviceFile {
    private static let name = "device"
    /// Chats of one process share a folder, which no other process has open.
    private static let turn = NIOLock()

    /// Returns the id in a folder, and creates one if there is none. Without a folder, or if it can't be written, each call creates another.
    static func id(in folder: URL?) -> DeviceID {
        let new = DeviceID(UUID().uuidString.lowercased())
        guard let file = folder?.appending(component: name) else { return new }
        return turn.withLock {
            if let kept = read(file) { return kept }
            try? Data(new.rawValue.utf8).write(to: file, options: .atomic)
            return new
        }
    }

    private static func read(_ file: URL) -> DeviceID? {
        guard let data = try? Data(contentsOf: file) else { return nil }
        let id = DeviceID(String(decoding: data, as: UTF8.self))
        return (try? DeviceDescription(deviceId: id).validate()) == nil ? nil : id
    }
}
