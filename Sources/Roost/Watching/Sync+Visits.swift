import Logging
import RoostAPI

/// Channels of others that the user watches and may read (ST-01, ST-06). The server sends their events as long as the watch lasts, and as long as that they are
/// followed: that is a *visit*.
///
/// - It begins with the answer to the watch, at the seq that the channel has there and with the messages that are in it. From then on its events are applied as
///   those of the user's own channels are.
/// - No resume brings the channel. If events are missing, or the connection was another, it is watched once more: whatever has happened since, the visit begins
///   afresh at the seq of that answer.
/// - It ends when nothing here watches the channel any more, when the user may not read it, when it is deleted, and when the files are read anew after another
///   process may have had them. Its messages are deleted then. If the user becomes a member, the membership takes its place.
///
/// It gives the user nothing that only members have: no unread messages, no place among their channels, no reports of what has arrived.
extension Sync {
    /// Whether the channel is followed only because it is watched.
    func isVisited(_ channel: ChannelID) -> Bool { saved.channels[channel]?.isVisit == true }

    /// Where a channel of the user's own is followed to; nil for those of others.
    func ownPosition(in channel: ChannelID) -> Position? { saved.channels[channel].flatMap { $0.isVisit ? nil : $0 } }

    // MARK: Beginning

    /// Begins a visit with the answer to a watch, if the channel is one of others. One that has missed nothing goes on.
    mutating func visit(_ state: WatchedChannel) {
        let view = ChannelView(channel: state.channel, membership: state.membership, ownCapabilities: state.ownCapabilities)
        visit(view, Rows(state.messages.messages), isWhole: !state.messages.hasOlder)
    }

    /// - Parameters:
    ///   - newest: The channel's newest messages, without a gap.
    ///   - isWhole: Whether there are no older ones.
    mutating func visit(_ view: ChannelView, _ newest: Rows, isWhole: Bool) {
        let channel = view.channel
        let id = channel.channelId
        guard wantsWatch(of: id), ownPosition(in: id) == nil, view.membership?.state != .member else { return }
        guard view.ownCapabilities.contains(.historyRead), channel.deletedAt == nil else { return endVisit(of: id) }
        owedVisits.remove(id)
        let seq = channel.counters.seq
        if let known = saved.channels[id] {
            guard known.cursor < seq || known.hasHole else { return }
            miss(id, after: known.cursor)
        }
        // Of an ephemeral channel there is nothing older to be had.
        let start = isWhole || channel.isEphemeral ? 0 : newest.oldestMessage ?? seq.addingWithSaturation(1)
        let position = Position(
            cursor: seq, windowStart: start, messageCount: channel.isEphemeral ? nil : channel.counters.messageCount,
            isVisit: true)
        saved.channels[id] = position
        visits.insert(id)
        outdateLoads(in: id)
        var writes: [StoreWrite] = [.visit(id, position), .channel(channel)]
        if !newest.isEmptyOfFeatures { writes.append(.rows(newest, of: .channel(id))) }
        store(writes, bringing: [newest])
        if phase == .online { tellMissed() }
    }

    // MARK: Gaps

    /// Watches a channel once more. If it is visited, the answer brings its newest messages; the state of the user's own channels comes with the resume.
    mutating func renewWatch(of channel: ChannelID) {
        let isVisited = isVisited(channel)
        send(
            WatchChannel(channel: channel, limit: isVisited ? nil : 0, watchersLimit: isVisited ? 0 : nil), for: .watch(channel))
    }

    /// Events of a visited channel are missing, or can't be applied. The visit begins afresh.
    mutating func renewVisit(of channel: ChannelID) {
        owedVisits.insert(channel)
        renewVisits()
    }

    /// Begins the visits afresh whose events are missing, now that nothing of the user's own is.
    mutating func renewVisits() {
        guard phase == .online else { return }
        for channel in owedVisits.sorted() {
            owedVisits.remove(channel)
            // An answer that is still to come has all that is missing by now.
            guard wantsWatch(of: channel), watchRetries[channel] == nil, !calls.values.contains(.watch(channel)) else { continue }
            renewWatch(of: channel)
        }
    }

    /// The answer to a watch that was renewed.
    mutating func takeRenewal(of channel: ChannelID, _ bytes: [UInt8]) {
        guard ownPosition(in: channel) == nil else { return }
        if let state = try? ReplyResult<WatchedChannel>.decode(bytes) {
            arrived(state)
            return visit(state)
        }
        guard isVisited(channel) else { return }
        // A message that this version can't read, say. Without messages the answer can be read, and lists fetch them page by page.
        log(.notice, "The answer to the watch of \(channel) couldn't be read.")
        endVisit(of: channel)
        renewWatch(of: channel)
    }

    // MARK: Ending

    /// Ends the visits of channels that nothing here watches any more.
    mutating func endUnwantedVisits() {
        mayEndVisits = false
        for channel in visits.sorted() where !wantsWatch(of: channel) { endVisit(of: channel) }
    }

    /// Does nothing for the user's own channels.
    mutating func endVisit(of channel: ChannelID) {
        owedVisits.remove(channel)
        guard visits.remove(channel) != nil, ownPosition(in: channel) == nil else { return }
        saved.channels[channel] = nil
        owedPermissions.remove(channel)
        askedPermissions[channel] = nil
        store([.endVisit(channel)])
    }
}
