import RoostAPI
import RoostCore

/// What others see of a user's devices, and devices that were signed out.
extension Checker {
    struct OwnDevice: Hashable {
        let user: UserID
        let device: DeviceID
    }

    // MARK: Delivery reports

    /// A user reports a delivery.
    ///
    /// - Returns: The number of the membership in which they report it.
    mutating func reports(_ mark: MarkDelivered, by user: UserID) -> Int {
        reports[mark.channel, default: [:]][user, default: []].insert(mark.seq)
        return periods[mark.channel]?[user]?.count ?? 0
    }

    /// A reply said that a report is stored.
    mutating func reported(_ mark: MarkDelivered, by user: UserID, in membership: Int) {
        takenReports[mark.channel, default: [:]][user, default: []].append((mark.seq, membership))
    }

    /// Others are sent how far a member has read and received.
    mutating func sentReceipt(_ position: ReadPosition, in channel: ChannelID) {
        let user = position.userId
        let before = receipts[channel]?[user]
        if let seq = position.deliveredSeq {
            if reports[channel]?[user]?.contains(seq) != true {
                fail("I12", "\(seq) of \(channel) is reported as delivered to \(user), who never reported it")
            }
            if let last = before?.deliveredSeq, seq <= last {
                fail("I12", "\(user)'s receipt for \(channel) is \(seq) after \(last)")
            }
        }
        receipts[channel, default: [:]][user] = before?.merged(with: position) ?? position
    }

    /// Compares a user's answer about the other members with what was sent about them.
    mutating func atRest(_ positions: [ReadPosition], in channel: ChannelID, members: [Member], as user: UserID) {
        for member in members where member.state == .member && member.userId != user && !discreet.contains(member.userId) {
            let other = member.userId
            guard let answered = positions.first(where: { $0.userId == other }), let joinedSeq = answered.joinedSeq else {
                fail("I12", "\(user) isn't notified how far \(other) has read \(channel)")
                continue
            }
            var expected = ReadPosition(userId: other, readSeq: joinedSeq, joinedSeq: joinedSeq)
            if let receipt = receipts[channel]?[other] { expected = expected.merged(with: receipt) }
            // The time of their last read survives leaving and coming back.
            if expected.readSeq == joinedSeq { expected.lastReadAt = answered.lastReadAt }
            if answered != expected { fail("I12", "\(other) is at \(answered) in \(channel), but was reported at \(expected)") }
            let last = periods[channel]?[other]?.count
            for report in takenReports[channel]?[other] ?? [] where report.membership == last {
                guard max(answered.readSeq, answered.deliveredSeq ?? 0) < report.seq else { continue }
                fail("I12", "\(other)'s report of \(channel) up to \(report.seq) was accepted and lost")
            }
        }
    }

    // MARK: Signing out

    mutating func signedOut(_ device: DeviceID, of user: UserID, upTo last: Int64) {
        signOuts[OwnDevice(user: user, device: device), default: []].append((last, heads))
    }

    /// An event was written to a connection of a device.
    mutating func delivered(_ stream: StreamID, _ seq: Seq, to device: DeviceIdentity, of user: UserID) {
        guard let end = end(of: device, of: user), seq > end.heads[stream] ?? 0 else { return }
        fail("I9", "\(user)'s \(device.id) receives \(stream) at \(seq), but was signed out at \(end.heads[stream] ?? 0)")
    }

    /// An operation of a device was committed.
    mutating func acted(_ device: DeviceIdentity, of user: UserID, _ kind: Event.Kind) {
        if end(of: device, of: user) != nil { fail("I9", "\(user)'s \(device.id) calls \(kind.rawValue) after it was signed out") }
    }

    /// When a sign-in ended; nil if it hasn't.
    private func end(of device: DeviceIdentity, of user: UserID) -> (last: Int64, heads: [StreamID: Seq])? {
        signOuts[OwnDevice(user: user, device: device.id)]?.first { $0.last >= device.signIn }
    }
}
