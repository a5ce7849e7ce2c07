import NIOCore
import RoostAPI
import RoostCore

/// The format in which the items of one stream travel between nodes.
///
/// A version comes first: a node ignores packets of a format that it doesn't know, and reads the events from the database. All numbers are
/// big endian; a text is its length in UTF-8 bytes (16 bits) followed by those bytes; an event's JSON has a length of 32 bits.
///
///     version: 1 byte, kind of the stream: 1 byte (0 channel, 1 user), id: text, number of items: 32 bits, then each item:
///     after, seq: 64 bits each; is the deletion: 1 byte; oldest message: 64 bits, 0 for none; joined: 16 bits, each a text and 64 bits;
///     the role, a text; floors: as joined without a role; whether others see that the user is online: 1 byte (0 no, 1 yes,
///     2 unchanged); left: 16 bits, each a text; roles: 16 bits, each two texts and 64 bits; readers:
///     members and others, 1 byte each, the roles that may read and those that may watch: 16 bits each, each a text; JSON
enum Packet {
    static let version: UInt8 = 7
    /// Bytes of events after which a new packet begins. A bus takes at most 1 MB in one packet.
    static let sizeBytesMax = 256 * 1024

    /// Packets with all items, in order.
    static func encode(_ items: some Sequence<StreamItem>) -> [(stream: StreamID, bytes: [UInt8])] {
        var order: [StreamID] = []
        var byStream: [StreamID: [StreamItem]] = [:]
        for item in items {
            if byStream[item.stream] == nil { order.append(item.stream) }
            byStream[item.stream, default: []].append(item)
        }
        return order.flatMap { stream in chunks(byStream[stream] ?? []).map { (stream, encode($0, of: stream)) } }
    }

    private static func chunks(_ items: [StreamItem]) -> [ArraySlice<StreamItem>] {
        var chunks: [ArraySlice<StreamItem>] = []
        var start = items.startIndex
        var sizeBytes = 0
        for (index, item) in items.enumerated() {
            if index > start, sizeBytes + item.json.count > sizeBytesMax {
                chunks.append(items[start..<index])
                start = index
                sizeBytes = 0
            }
            sizeBytes += item.json.count
        }
        if start < items.endIndex { chunks.append(items[start...]) }
        return chunks
    }

    private static func encode(_ items: ArraySlice<StreamItem>, of stream: StreamID) -> [UInt8] {
        var bytes = ByteBuffer()
        bytes.reserveCapacity(items.reduce(64) { $0 + $1.json.count + 64 })
        bytes.writeInteger(version)
        switch stream {
        case .channel(let id):
            bytes.writeInteger(UInt8(0))
            bytes.writeText(id.rawValue)
        case .user(let id):
            bytes.writeInteger(UInt8(1))
            bytes.writeText(id.rawValue)
        }
        bytes.writeInteger(UInt32(clamping: items.count))
        for item in items {
            bytes.writeInteger(item.after)
            bytes.writeInteger(item.seq)
            bytes.writeInteger(UInt8(item.isDeletion ? 1 : 0))
            bytes.writeInteger(item.oldestMessage ?? 0)
            bytes.writePlaces(item.joined)
            for place in item.joined.prefix(Int(UInt16.max)) { bytes.writeText(place.role.rawValue) }
            bytes.writePlaces(item.floors)
            bytes.writeInteger(item.sharesPresence.map { $0 ? UInt8(1) : 0 } ?? 2)
            bytes.writeInteger(UInt16(clamping: item.left.count))
            for leaving in item.left.prefix(Int(UInt16.max)) { bytes.writeText(leaving.user.rawValue) }
            bytes.writeRoles(item.roles)
            bytes.writeReaders(item.readers)
            bytes.writeInteger(UInt32(clamping: item.json.count))
            bytes.writeBytes(item.json)
        }
        return Array(bytes.readableBytesView)
    }

    /// The items of a packet. Nil if it has another version, or doesn't belong to the stream it arrived on.
    static func decode(_ payload: [UInt8], of stream: StreamID) -> [StreamItem]? {
        var bytes = ByteBuffer(bytes: payload)
        guard bytes.readInteger(as: UInt8.self) == version, let kind = bytes.readInteger(as: UInt8.self),
            let id = bytes.readText(), (kind == 0 ? StreamID.channel(ChannelID(id)) : .user(UserID(id))) == stream,
            let count = bytes.readInteger(as: UInt32.self)
        else { return nil }
        var items: [StreamItem] = []
        for _ in 0..<count {
            guard let item = bytes.readItem(of: stream) else { return nil }
            items.append(item)
        }
        return bytes.readableBytes == 0 ? items : nil
    }
}

extension ByteBuffer {
    fileprivate mutating func writeText(_ text: String) {
        // Ids have at most 512 bytes.
        let utf8 = text.utf8.prefix(Int(UInt16.max))
        writeInteger(UInt16(clamping: utf8.count))
        writeBytes(utf8)
    }

    fileprivate mutating func writePlaces(_ places: [StreamItem.Place]) {
        writeInteger(UInt16(clamping: places.count))
        for place in places.prefix(Int(UInt16.max)) {
            writeText(place.channel.rawValue)
            writeInteger(place.seq)
        }
    }

    fileprivate mutating func readText() -> String? {
        guard let length = readInteger(as: UInt16.self) else { return nil }
        return readString(length: Int(length))
    }

    /// Reads a position, which must be one that a stream can have: the node calculates with it.
    fileprivate mutating func readSeq() -> Seq? {
        readInteger(as: Seq.self).flatMap { 0...Limits.seqMax ~= $0 ? $0 : nil }
    }

    fileprivate mutating func readPlaces() -> [StreamItem.Place]? {
        guard let count = readInteger(as: UInt16.self) else { return nil }
        var places: [StreamItem.Place] = []
        for _ in 0..<count {
            guard let channel = readText(), let seq = readSeq() else { return nil }
            places.append(.init(channel: ChannelID(channel), seq: seq))
        }
        return places
    }

    fileprivate mutating func writeRoles(_ changes: [StreamItem.RoleChange]) {
        writeInteger(UInt16(clamping: changes.count))
        for change in changes.prefix(Int(UInt16.max)) {
            writeText(change.user.rawValue)
            writeText(change.role.rawValue)
            writeInteger(change.seq)
        }
    }

    fileprivate mutating func readRoles() -> [StreamItem.RoleChange]? {
        guard let count = readInteger(as: UInt16.self) else { return nil }
        var changes: [StreamItem.RoleChange] = []
        for _ in 0..<count {
            guard let user = readText(), let role = readText(), let seq = readSeq() else { return nil }
            changes.append(.init(user: UserID(user), role: ChannelRole(rawValue: role), seq: seq))
        }
        return changes
    }

    fileprivate mutating func writeReaders(_ readers: Readers) {
        writeInteger(readers.members.rawValue)
        writeInteger(readers.others.rawValue)
        for roles in [readers.roles, readers.watchRoles] {
            writeInteger(UInt16(clamping: roles.count))
            for role in roles.prefix(Int(UInt16.max)) { writeText(role.rawValue) }
        }
    }

    fileprivate mutating func readReaders() -> Readers? {
        guard let members = readInteger(as: UInt8.self).flatMap(Readers.Level.init(rawValue:)),
            let others = readInteger(as: UInt8.self).flatMap(Readers.Level.init(rawValue:)),
            let roles = readRoleNames(), let watchRoles = readRoleNames()
        else { return nil }
        return Readers(members: members, others: others, roles: roles, watchRoles: watchRoles)
    }

    private mutating func readRoleNames() -> [ChannelRole]? {
        guard let count = readInteger(as: UInt16.self) else { return nil }
        var roles: [ChannelRole] = []
        for _ in 0..<count {
            guard let role = readText() else { return nil }
            roles.append(ChannelRole(rawValue: role))
        }
        return roles
    }

    fileprivate mutating func readItem(of stream: StreamID) -> StreamItem? {
        guard let after = readSeq(), let seq = readSeq(), seq > after,
            let isDeletion = readInteger(as: UInt8.self), let oldestMessage = readSeq(),
            var joined = readPlaces()
        else { return nil }
        for index in joined.indices {
            guard let role = readText() else { return nil }
            joined[index].role = ChannelRole(rawValue: role)
        }
        guard let floors = readPlaces(), let sharing = readInteger(as: UInt8.self), sharing <= 2,
            let leftCount = readInteger(as: UInt16.self)
        else { return nil }
        var left: [StreamItem.Leaving] = []
        for _ in 0..<leftCount {
            guard let user = readText() else { return nil }
            // Each item on the bus is one event, so users leave by that event.
            left.append(.init(user: UserID(user), seq: seq))
        }
        guard let roles = readRoles(), let readers = readReaders() else { return nil }
        guard let length = readInteger(as: UInt32.self), let json = readBytes(length: Int(length)) else { return nil }
        return StreamItem(
            stream: stream, after: after, seq: seq, joined: joined, floors: floors,
            sharesPresence: sharing == 2 ? nil : sharing == 1,
            roles: roles, readers: readers, left: left,
            isDeletion: isDeletion != 0,
            oldestMessage: oldestMessage == 0 ? nil : oldestMessage, json: json)
    }
}
