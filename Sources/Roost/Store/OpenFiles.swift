import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// The caches that this process has open.
///
/// Several chats of a user share a file, and each relies on the positions it has read. When one of them starts a channel over, the others' positions are wrong:
/// written over the new ones, they would claim that messages are cached which are gone. A store that writes a position therefore makes sure that it has read
/// the last restart. Pages added by a chat are no restart: the file has those of all chats, and a chat that doesn't know of some requests them again at worst.
///
/// Restarts are numbered. The transaction that makes one notes it, so the next writer knows of it; the restart is over when the transaction is. A reader
/// meanwhile gets the state before, and so knows no restart from the first unfinished one on. It reads again before it writes about the channel; nothing waits.
enum OpenFiles {
    private struct OpenFile {
        struct TakenVisit {
            let store: Int64
            /// When the store last wrote about the channel.
            var heardAt: ContinuousClock.Instant
        }

        /// The numbers of the stores that have it open.
        var stores: Set<Int64> = []
        /// How often something started over while several stores had the file open.
        var lastNumber = 0
        /// The number of the last restart of each channel, and of all of them.
        var begun: [ChannelID: Int] = [:]
        var erased = 0
        /// The first numbers of transactions that aren't over.
        var open: Set<Int> = []
        /// The visits that a store has taken over from another open store.
        var taken: [ChannelID: TakenVisit] = [:]

        /// The last restart that later readers see, with all before it.
        var lastReadable: Int { open.min().map { $0 - 1 } ?? lastNumber }
    }

    /// The restarts that one store has read, or made itself.
    struct Known: Sendable {
        fileprivate var all = 0
        fileprivate var channels: [ChannelID: Int] = [:]
        /// The channels that it visits together with another store, with the seqs it visits them from.
        fileprivate(set) var joined: [ChannelID: Seq] = [:]
    }

    /// The restarts of a transaction.
    struct Beginning: Sendable {
        fileprivate let url: URL
        fileprivate let first: Int
    }

    /// Another chat of this process restarted something that this one writes about.
    struct RestartedElsewhere: Error, CustomStringConvertible {
        var description: String { "Another chat of this process has fetched the same data again." }
    }

    private static let files = NIOLockedValueBox<[URL: OpenFile]>([:])
    /// Held while a file is opened, which may wait for its writer. The writer needs ``files``.
    private static let opening = NIOLock()

    /// Opens a file while no other store does.
    ///
    /// - Parameters:
    ///   - store: The store's number.
    ///   - open: Receives whether the store is the first one to have the file.
    static func add<Connections>(
        _ url: URL?, _ store: Int64, _ open: (_ isFirst: Bool) throws -> Connections
    ) throws -> Connections {
        guard let url else { return try open(true) }
        return try opening.withLock {
            // Restarts from here on are noted. Opening waits for a transaction that began earlier.
            let isFirst = files.withLockedValue { files in
                files[url, default: OpenFile()].stores.insert(store)
                return files[url]?.stores.count == 1
            }
            do {
                return try open(isFirst)
            } catch {
                remove(url, store)
                throw error
            }
        }
    }

    static func remove(_ url: URL?, _ store: Int64) {
        guard let url else { return }
        files.withLockedValue { files in
            files[url]?.stores.remove(store)
            if files[url]?.stores.isEmpty == true { files[url] = nil }
        }
    }

    /// Whether several stores have a file open.
    static func isShared(_ url: URL?) -> Bool {
        guard let url else { return false }
        return files.withLockedValue { ($0[url]?.stores.count ?? 0) > 1 }
    }

    /// Whether a store has a file open, by its number.
    static func isOpen(_ store: Int64, in url: URL?) -> Bool {
        guard let url else { return false }
        return files.withLockedValue { $0[url]?.stores.contains(store) ?? false }
    }

    /// Whether a store has taken a visit over from another one, and has written about it within 10 seconds.
    static func keepsVisit(_ store: Int64, of channel: ChannelID, in url: URL?) -> Bool {
        guard let url, let taken = files.withLockedValue({ $0[url]?.taken[channel] }), taken.store == store else { return false }
        return taken.heardAt.duration(to: .now) < .seconds(10)
    }

    /// What a store knows if it reads all positions from now on.
    static func known(of url: URL?) -> Known {
        guard let url else { return Known() }
        return files.withLockedValue { Known(all: $0[url]?.lastReadable ?? 0) }
    }

    /// Makes sure that a store may write, and notes what it restarts. Must be called while nothing else writes the file.
    ///
    /// - Returns: The restarts to end with the transaction; nil for none.
    /// - Throws: ``RestartedElsewhere`` if the store has to read the positions first.
    static func note(_ shared: SharedVisits, by store: Int64, to url: URL?, _ known: inout Known) throws -> Beginning? {
        guard let url else { return nil }
        return try files.withLockedValue { files in
            guard var file = files[url], file.stores.count > 1 || file.lastNumber > 0 else { return nil }
            // A refused write notes nothing.
            var knowing = known
            let first = file.lastNumber + 1
            for channel in shared.taken { file.taken[channel] = OpenFile.TakenVisit(store: store, heardAt: .now) }
            // Other stores began these visits, and the store adds to them.
            for (channel, seq) in shared.joined {
                (knowing.channels[channel], knowing.joined[channel]) = (file.lastNumber, seq)
            }
            for write in shared.writes {
                if !file.taken.isEmpty, let channel = write.channel, file.taken[channel]?.store == store {
                    file.taken[channel]?.heardAt = .now
                }
                switch write {
                case .erase:
                    file.lastNumber += 1
                    (file.erased, file.begun) = (file.lastNumber, [:])
                    knowing = Known(all: file.lastNumber)
                // Forgotten stretches too: another store believes that it has them.
                case .forget(let channel), .leave(let channel), .forgetMessages(let channel, _), .visit(let channel, _),
                    .endVisit(let channel):
                    file.lastNumber += 1
                    file.begun[channel] = file.lastNumber
                    (knowing.channels[channel], knowing.joined[channel]) = (file.lastNumber, nil)
                case .position(let channel, _), .advance(let channel, _), .page(let channel, _):
                    let begun = max(file.begun[channel] ?? 0, file.erased)
                    guard begun <= max(knowing.all, knowing.channels[channel] ?? 0) else { throw RestartedElsewhere() }
                case .userPosition: guard file.erased <= knowing.all else { throw RestartedElsewhere() }
                default: break
                }
            }
            let begins = file.lastNumber >= first
            if begins { file.open.insert(first) }
            (files[url], known) = (file, knowing)
            return begins ? Beginning(url: url, first: first) : nil
        }
    }

    /// Ends the restarts of a transaction, whether it was committed or not.
    static func end(_ beginning: Beginning?) {
        guard let beginning else { return }
        files.withLockedValue { _ = $0[beginning.url]?.open.remove(beginning.first) }
    }
}
