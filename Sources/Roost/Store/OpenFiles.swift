import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// The caches that this process has open.
///
/// Several chats of a user share a file, and each goes by the positions that it has read. When one of them begins a channel afresh, those of the
/// others are wrong: written over the new ones they would say that messages are cached which are gone. So a store that writes a position makes
/// sure that it has read the last beginning.
enum OpenFiles {
    private struct OpenFile {
        var storeCount = 0
        /// How often something began afresh while several stores had the file open.
        var lastNumber = 0
        /// The last time for each channel, and for all of them.
        var begun: [ChannelID: Int] = [:]
        var erased = 0
    }

    /// What one store has read of the positions, or written itself.
    struct Known: Sendable {
        fileprivate var all = 0
        fileprivate var channels: [ChannelID: Int] = [:]
    }

    /// Another chat of this process began something afresh that this one writes about.
    struct BegunAfresh: Error, CustomStringConvertible {
        var description: String { "Another chat of this process has fetched the same data afresh." }
    }

    private static let files = NIOLockedValueBox<[URL: OpenFile]>([:])

    /// Opens a file while no other store does.
    ///
    /// - Parameter open: Is told whether the store is the first one to have the file.
    static func add<Connections>(_ url: URL?, _ open: (_ isFirst: Bool) throws -> Connections) throws -> Connections {
        guard let url else { return try open(true) }
        return try files.withLockedValue { files in
            let connections = try open(files[url] == nil)
            files[url, default: OpenFile()].storeCount += 1
            return connections
        }
    }

    static func remove(_ url: URL?) {
        guard let url else { return }
        files.withLockedValue { files in
            files[url]?.storeCount -= 1
            if files[url]?.storeCount == 0 { files[url] = nil }
        }
    }

    /// What a store knows that reads all positions from now on.
    static func known(of url: URL?) -> Known {
        guard let url else { return Known() }
        return files.withLockedValue { Known(all: $0[url]?.lastNumber ?? 0) }
    }

    /// Makes sure that a store may write, and notes what it begins afresh. It is called while nobody else writes the file.
    ///
    /// - Throws: ``BegunAfresh`` if the store has to read the positions first.
    static func note(_ writes: [StoreWrite], to url: URL?, _ known: inout Known) throws {
        guard let url else { return }
        try files.withLockedValue { files in
            guard var file = files[url], file.storeCount > 1 || file.lastNumber > 0 else { return }
            defer { files[url] = file }
            for write in writes {
                switch write {
                case .erase:
                    file.lastNumber += 1
                    (file.erased, file.begun) = (file.lastNumber, [:])
                    known = Known(all: file.lastNumber)
                case .forget(let channel), .leave(let channel):
                    file.lastNumber += 1
                    file.begun[channel] = file.lastNumber
                    known.channels[channel] = file.lastNumber
                case .position(let channel, _):
                    let begun = max(file.begun[channel] ?? 0, file.erased)
                    guard begun <= max(known.all, known.channels[channel] ?? 0) else { throw BegunAfresh() }
                case .userPosition: guard file.erased <= known.all else { throw BegunAfresh() }
                default: break
                }
            }
        }
    }
}
