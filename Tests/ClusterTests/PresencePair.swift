import RoostAPI
import Synchronization

@testable import RoostServer

/// Presence on two nodes that hear one another, on a test clock and a bus that delivers immediately.
final class PresencePair: Sendable {
    let boards = [PresenceBoard(), PresenceBoard()]
    private let members = Mutex<[ClusterPresence]>([])
    private let silent = Mutex<Set<Int>>([])

    init(timeout: Duration = ClusterPresence.timeoutStandard) {
        for number in boards.indices {
            let presence = ClusterPresence(node: NodeID("n\(number)"), board: boards[number], timeout: timeout) {
                [weak self] topic, message in self?.carry(message, to: topic, from: number)
            }
            boards[number].onChange { presence.changed($0) }
            boards[number].onFirstWatch { [weak self] channel in
                guard let self else { return }
                presence.watched(channel, at: now.withLock { $0 })
            }
            members.withLock { $0.append(presence) }
        }
        for number in boards.indices { self[number].sayHello() }
    }

    subscript(number: Int) -> ClusterPresence { members.withLock { $0[number] } }

    func silence(_ number: Int) { silent.withLock { _ = $0.insert(number) } }

    func unsilence(_ number: Int) { silent.withLock { _ = $0.remove(number) } }

    private func carry(_ message: ClusterPresence.Message, to topic: BusTopic, from sender: Int) {
        guard !silent.withLock({ $0.contains(sender) }) else { return }
        let all = members.withLock { $0 }
        for (number, presence) in all.enumerated() where number != sender {
            if case .node(let node) = topic, node != NodeID("n\(number)") { continue }
            presence.receive(message, at: now.withLock { $0 })
        }
    }

    private let now = Mutex<Int64>(10_000)

    /// Lets time pass in steps, and returns whether one node found the other lost.
    @discardableResult
    func pass(_ milliseconds: Int64, ticking: [Int] = [0, 1]) -> Bool {
        var hasLost = false
        for _ in 0..<(milliseconds / 50) {
            let time = now.withLock { now in
                now += 50
                return now
            }
            for number in ticking where self[number].tick(at: time) { hasLost = true }
        }
        return hasLost
    }

    func askWho(_ users: [UserID], then take: @escaping @Sendable (Set<UserID>) -> Void) -> Bool {
        self[0].prepare(users, at: now.withLock { $0 }, then: take)
    }

    /// The page of watchers that a node answers with, once it has asked.
    func watchers(of channel: ChannelID, _ page: Range<Int>) -> [UserID]? {
        let found = Mutex<[UserID]?>(nil)
        let isAsked = self[0].prepareWatchers(of: channel, upTo: page.upperBound, at: now.withLock { $0 }) { [self] elsewhere in
            let users = self[0].watchers(of: channel, offset: page.lowerBound, limit: page.count, elsewhere: elsewhere)
            found.withLock { $0 = users }
        }
        return isAsked ? found.withLock { $0 } : nil
    }

    func ask(_ channel: ChannelID, on number: Int) -> Bool {
        let isReady = Mutex(false)
        self[number].prepare(channel, at: now.withLock { $0 }) { isReady.withLock { $0 = true } }
        return isReady.withLock { $0 }
    }
}
