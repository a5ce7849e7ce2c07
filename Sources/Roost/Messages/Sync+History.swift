import Logging
import RoostAPI

/// A page of older messages on its way.
struct HistoryLoad: Hashable, Sendable {
    /// The beginning of the window when the page was requested.
    var before: Seq
    var limit: Int
    var waiting: [CallToken]
    /// Rows about messages before the window that came meanwhile: the page may be older than they are.
    var overtaken = Rows()
}

/// Older messages: they extend the window of cached messages downwards, so that it never has a hole.
extension Sync {
    mutating func loadOlder(in channel: ChannelID, limit: Int, for token: CallToken) {
        guard let position = saved.channels[channel] else {
            return emit(.reply(token, .failure(RoostError(.notMember, "The channel isn't one of yours."))))
        }
        guard position.windowStart > 0 else { return emit(.reply(token, .success([]))) }
        if loads[channel] != nil {
            loads[channel]?.waiting.append(token)
            return
        }
        guard isAuthenticated else {
            return emit(.reply(token, .failure(RoostError(.notConnected, "There is no connection to the server."))))
        }
        loads[channel] = HistoryLoad(before: position.windowStart, limit: limit, waiting: [token])
        send(ListMessages(channel: channel, before: position.windowStart, limit: limit), for: .history(channel))
    }

    mutating func pageArrived(in channel: ChannelID, _ result: Result<[UInt8], RoostError>) {
        guard let load = loads.removeValue(forKey: channel) else { return }
        do {
            let page = try ReplyResult<HistoryPage>.decode(try result.get(), settings.rowKinds)
            guard let position = saved.channels[channel] else { throw RoostError(.notMember, "The channel isn't one of yours.") }
            guard position.windowStart == load.before else { return loadAgain(load, in: channel, before: position.windowStart) }
            store(page, of: load, in: channel)
            for token in load.waiting { emit(.reply(token, .success([]))) }
        } catch {
            let refusal = error as? RoostError ?? RoostError(.internalError, "The page couldn't be read: \(error)")
            for token in load.waiting { emit(.reply(token, .failure(refusal))) }
        }
    }

    /// The channel started afresh in between: the page doesn't join the window that is there now.
    private mutating func loadAgain(_ load: HistoryLoad, in channel: ChannelID, before: Seq) {
        guard before > 0 else {
            for token in load.waiting { emit(.reply(token, .success([]))) }
            return
        }
        loads[channel] = HistoryLoad(before: before, limit: load.limit, waiting: load.waiting)
        send(ListMessages(channel: channel, before: before, limit: load.limit), for: .history(channel))
    }

    private mutating func store(_ page: HistoryPage, of load: HistoryLoad, in channel: ChannelID) {
        for problem in page.rows.problems { log(.error, "A message of \(channel) couldn't be read and was skipped: \(problem)") }
        let start = page.hasOlder ? page.rows.rows.oldestMessage ?? load.before : 0
        saved.channels[channel]?.windowStart = start
        let rows = [page.rows.rows.ofFeatures, load.overtaken.withoutRows(aboutMessagesBefore: start)]
        emit(.store(rows.filter { !$0.isEmptyOfFeatures }.map { .rows($0, of: .channel(channel)) } + positionWrite(of: channel)))
    }
}

/// A page of messages and of what is about them, read leniently.
private struct HistoryPage: Decodable {
    var rows: LenientRows
    var hasOlder: Bool

    private enum CodingKeys: String, CodingKey { case hasOlder }

    init(from decoder: any Decoder) throws {
        rows = try LenientRows(from: decoder)
        hasOlder = try decoder.container(keyedBy: CodingKeys.self).decode(Bool.self, forKey: .hasOlder)
    }
}
