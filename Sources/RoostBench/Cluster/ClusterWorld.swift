#if Cluster
import Foundation
import RoostAPI
import RoostDatabase

/// The users and channels of the benchmark: the same ones on PostgreSQL and on SQLite.
///
/// Each run gives them other names, so it finds its channels empty in an external database, whatever ran there before.
struct ClusterWorld {
    static let channelCount = 50
    /// The members of each channel that several nodes share.
    static let membersOfShared = 3
    /// The number of senders in the one hot channel.
    static let hotSenderCount = 16

    private let run = String(UInt32.random(in: 0 ... .max), radix: 36)
    let userCount: Int

    func user(_ number: Int) -> UserID { UserID("\(run)-user-\(number)") }
    /// A channel of the user with its number.
    func own(_ number: Int) -> String { "\(run)-own-\(number)" }
    var hot: String { "\(run)-hot" }
    /// All users are its members.
    var wide: String { "\(run)-wide" }
    /// Returns another channel for each count of nodes, so each count begins with empty ones.
    func shared(_ number: Int, nodeCount: Int) -> String { "\(run)-shared-\(nodeCount)-\(number)" }
    func memberOfShared(_ number: Int, _ place: Int) -> Int { number * Self.membersOfShared + place }
    /// The channel in which arrivals are timed, and the number of its members.
    var timed: String { "\(run)-timed" }
    let timedMemberCount = 22

    /// One of the many channels that are divided among the first users.
    func spread(_ number: Int) -> String { "\(run)-spread-\(number)" }
    func ownerOfSpread(_ number: Int) -> UserID { user(number % Self.channelCount) }

    /// Returns an idle user. Each channel has a hundred of them.
    func idleUser(_ number: Int) -> UserID { UserID("\(run)-idle-\(number)") }
    func idleChannel(ofUser number: Int) -> String { "\(run)-idle-\(number / 100)" }

    func fill(_ database: any Database) throws {
        let everybody = Array(0..<userCount)
        try Seed.fill(database) { seed in
            try seed.addUsers(everybody.map(user))
            for number in 0..<Self.channelCount { try add(own(number), [number], to: &seed) }
            try add(hot, Array(0..<Self.hotSenderCount), to: &seed)
            try add(wide, everybody, to: &seed)
            try add(timed, Array(0..<timedMemberCount), to: &seed)
            for nodeCount in 1...3 {
                for number in 0..<Self.channelCount {
                    let members = (0..<Self.membersOfShared).map { memberOfShared(number, $0) }
                    try add(shared(number, nodeCount: nodeCount), members, to: &seed)
                }
            }
        }
    }

    private func add(_ channel: String, _ members: [Int], to seed: inout Seed) throws {
        let channel = ChannelID(channel)
        try seed.forEach(members) { batch, number in
            if number == members.first {
                try batch.perform(CreateChannel(channel: channel), as: user(number))
            } else {
                try batch.perform(JoinChannel(channel: channel), as: user(number))
            }
        }
    }
}
#endif
