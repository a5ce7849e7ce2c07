import Foundation
import GRDB
import RoostAPI

/// What a row of a channel list holds. It is copied as one reference and compared by it first: after a change, most rows of a list are the
/// ones that they were.
final class ChannelRow: Hashable, Sendable {
    /// The stored rows from which a view was decoded.
    private struct Source: Hashable {
        var attributes: Int64
        var membership: Int64?
        var capabilities: Int64?
        var messageSeq: Seq?
        var messageChangeSeq: Seq?
    }

    let view: ChannelView
    private let source: Source?

    /// A row that the server sent.
    init(_ view: ChannelView) {
        self.view = view
        source = nil
    }

    private init(_ view: ChannelView, _ source: Source) {
        self.view = view
        self.source = source
    }

    static func == (one: ChannelRow, other: ChannelRow) -> Bool { one === other || one.view == other.view }

    func hash(into hasher: inout Hasher) { view.hash(into: &hasher) }

    /// A row of ``GRDB/Database/channelRow(_:known:now:)``, in the order of its columns. What `known` was decoded from isn't decoded again.
    convenience init(_ row: Row, known: ChannelRow?, now: Timestamp?) throws {
        let source = Source(
            attributes: row[0], membership: row[1], capabilities: row[2], messageSeq: row[3], messageChangeSeq: row[4])
        func model<Model: Decodable>(_ column: Int) throws -> Model? {
            try (row[column] as Data?).map { try StoredJSON.decode(Model.self, from: $0) }
        }
        // The membership of a deleted channel isn't shown as it is stored.
        let known = known?.view.channel.deletedAt == nil ? known : nil
        let before = known?.source
        var channel: Channel
        if let known, before?.attributes == source.attributes {
            channel = known.view.channel
        } else {
            channel = try StoredJSON.decode(Channel.self, from: row[11])
        }
        channel.counters = ChannelCounters(row, from: 5)
        if let now { channel.updateTimedStates(now) }

        let isSameMembership = before != nil && before?.membership == source.membership
        var membership = isSameMembership ? known?.view.membership : try model(12)
        var permissions: [Permission]
        if let known, isSameMembership, before?.capabilities == source.capabilities {
            permissions = known.view.ownCapabilities
        } else {
            let capabilities: Capabilities? = try model(13)
            let isMember = membership?.state == .member
            permissions = capabilities?.now(as: isMember ? membership?.role : nil) ?? []
        }
        if channel.deletedAt != nil {
            // A deleted channel has no members, without a word to any of them.
            membership?.state = .none
            permissions = []
        }
        let isSameMessage =
            before != nil && before?.messageSeq == source.messageSeq && before?.messageChangeSeq == source.messageChangeSeq
        let lastMessage = isSameMessage ? known?.view.lastMessage : try model(14)
        self.init(
            ChannelView(
                channel: channel, membership: membership, invitation: try model(15), lastMessage: lastMessage,
                ownCapabilities: permissions), source)
    }
}
