import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport

@testable import RoostServer

/// Others' read and delivered positions in each channel, as known by a client that has fetched them once and follows the signals.
///
/// It fetches again where the protocol sends no signal: with a new connection or membership, when members come, go or get another
/// role, and after a signal that isn't whole.
struct FollowedReaders {
    struct Followed {
        /// The membership in which the client asked.
        let joinedSeq: Seq
        var positions: [UserID: ReadPosition]
    }

    fileprivate(set) var channels: [ChannelID: Followed] = [:]

    mutating func take(_ event: Event) {
        guard case .channel(let channel) = event.stream, event.rows.members?.isEmpty == false else { return }
        channels[channel] = nil
    }

    mutating func take(_ frame: SignalFrame) {
        for text in ServerFrame.texts(in: frame.bytes) {
            guard let signal = try? JSONDecoder().decode(Signal.self, from: Data(text)), let update = signal.read else { continue }
            guard update.isWhole else {
                channels[signal.channel] = nil
                continue
            }
            for position in update.readers {
                let known = channels[signal.channel]?.positions[position.userId]
                channels[signal.channel]?.positions[position.userId] = known?.merged(with: position) ?? position
            }
        }
    }
}

extension Room {
    /// Makes a connected client fetch others' read positions, and follow them from then on.
    func followReaders(_ index: Int) throws {
        seats[index].readers = FollowedReaders()
        try deliver()
    }

    /// Sends new read and delivered positions, like a node's board that is checked once after these notices.
    func sendReaders(of notices: [Notice]) throws {
        guard seats.contains(where: { $0.readers != nil }) else { return }
        var board = SignalBoard()
        for case .read(let position, let channel) in notices { board.reads(position, in: channel) }
        let due = board.takeDue(at: 0, presence: EmptyPresence())
        if !due.isEmpty {
            send(
                try world.database.read { transaction in
                    var context = Context(transaction: transaction, caller: .server, now: world.now, ids: IDGenerator())
                    for signal in due { try context.notify(signal) }
                    return context.notices
                })
        }
        for index in seats.indices where seats[index].isConnected && seats[index].held == nil { try askForReaders(index) }
    }

    private func askForReaders(_ index: Int) throws {
        guard let followed = seats[index].readers?.channels else { return }
        let client = seats[index].client
        var channels: [ChannelID: FollowedReaders.Followed] = [:]
        for id in client.channels.keys {
            let joinedSeq = client.memberships[id]?.joinedSeq ?? 0
            if let known = followed[id], known.joinedSeq == joinedSeq {
                channels[id] = known
            } else {
                channels[id] = .init(joinedSeq: joinedSeq, positions: try allReaders(of: id, as: client.user) ?? [:])
            }
        }
        seats[index].readers?.channels = channels
    }

    /// Everybody's read positions in a channel; nil if the user may not know them.
    private func allReaders(of channel: ChannelID, as user: UserID) throws -> [UserID: ReadPosition]? {
        do {
            let positions = try all { try world.perform(ListReaders(channel: channel, limit: 100, cursor: $0), as: user) }
            return Dictionary(uniqueKeysWithValues: positions.map { ($0.userId, $0) })
        } catch is RoostError {
            return nil
        }
    }

    /// Where a client's knowledge of others differs from a new answer, except channels in which it would be refused.
    func readerDifferences(of index: Int, except isExpected: (String) -> Bool) throws -> [String] {
        guard let followed = seats[index].readers?.channels, seats[index].isConnected else { return [] }
        // A user's own position is sent on their own stream, with the membership.
        let own = seats[index].client.user
        var (held, truth) = (View(), View())
        for (id, known) in followed {
            guard let answer = try allReaders(of: id, as: own) else { continue }
            for (user, position) in known.positions where user != own { held.add("reader \(user)", of: id, position) }
            for (user, position) in answer where user != own { truth.add("reader \(user)", of: id, position) }
        }
        held.forget(isExpected)
        truth.forget(isExpected)
        return held.differences(from: truth)
    }
}
