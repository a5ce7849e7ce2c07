import NIOCore
import RoostAPI
import RoostCore

/// Builds the bytes of a batch, ready to be written to any number of sockets.
///
/// Events of one audience that follow one another stand in one buffer, so that a socket gets them in one write. A channel's order is kept. Two
/// things divide what stands together: a change of an audience, and an event of a user's own stream, since a user's read position counts
/// messages of a channel, and is best told between those that it was made between.
struct EventFrames {
    /// One step of delivery, in order.
    enum Step: Sendable {
        case send(Audience, Frames)
        /// An event of the past, to a connection that begins to get a channel's.
        case catchUp(ConnectionID, ByteBuffer)
        case change(Notice)
        /// A connection gets the events of a channel that its user is a member of.
        case attach(ConnectionID, ChannelID)
        case reply(SocketAddress, [UInt8])
    }

    /// The same events twice: as who watches gets them, and as who doesn't.
    struct Frames: Sendable {
        var watching = ByteBuffer()
        var notification = ByteBuffer()
        var eventCount = 0
    }

    private(set) var steps: [Step] = []
    /// Where in `steps` the buffer of an audience stands that may still grow.
    private var open: [Audience: Int] = [:]

    /// Adds an event, as its members in JSON.
    mutating func add(_ members: [UInt8], to audience: Audience) {
        if case .user = audience { open.removeAll(keepingCapacity: true) }
        if let index = open[audience], case .send(_, var frames) = steps[index] {
            // Taken out while it grows, so that the buffer isn't copied.
            steps[index] = .send(audience, Frames())
            frames.append(members)
            steps[index] = .send(audience, frames)
        } else {
            var frames = Frames()
            frames.append(members)
            if case .channel = audience { open[audience] = steps.count }
            steps.append(.send(audience, frames))
        }
    }

    /// Adds an event of the past for one connection.
    mutating func add(_ members: [UInt8], to connection: ConnectionID, isWatching: Bool) {
        var frames = Frames()
        frames.append(members)
        steps.append(.catchUp(connection, isWatching ? frames.watching : frames.notification))
    }

    mutating func change(_ notice: Notice) {
        open.removeAll(keepingCapacity: true)
        steps.append(.change(notice))
    }

    mutating func attach(_ connection: ConnectionID, to channel: ChannelID) {
        open.removeAll(keepingCapacity: true)
        steps.append(.attach(connection, channel))
    }

    mutating func reply(_ payload: [UInt8], to address: SocketAddress) { steps.append(.reply(address, payload)) }

    /// The steps of a whole batch, in the order of its operations: of each its events, then its reply.
    static func steps(for committed: [Committed]) -> [Step] {
        var frames = EventFrames()
        for operation in committed {
            for notice in operation.notices {
                if case .event(let event, let audience) = notice {
                    frames.add(event.encodedMembers, to: audience)
                } else {
                    frames.change(notice)
                }
            }
            if case .socket(let address, let payload) = operation.answer { frames.reply(payload, to: address) }
        }
        return frames.steps
    }
}

extension Event {
    /// The members of the event as JSON, without the braces: encoded once for all who get it.
    var encodedMembers: [UInt8] {
        var json = JSONBytes(capacity: 512)
        writeMembers(to: &json)
        return json.bytes
    }
}

extension EventFrames.Frames {
    /// Adds an event whose members are given as JSON, with the mark before them.
    mutating func append(_ members: [UInt8]) {
        watching.writeTextFrame(#"{"watching":true,"#, members, "}")
        notification.writeTextFrame(#"{"watching":false,"#, members, "}")
        eventCount += 1
    }
}

extension ByteBuffer {
    /// Writes an unmasked, final text frame, as a server sends it (RFC 6455 §5.2).
    mutating func writeTextFrame(_ prefix: StaticString = "", _ payload: [UInt8], _ suffix: StaticString = "") {
        let length = prefix.utf8CodeUnitCount + payload.count + suffix.utf8CodeUnitCount
        reserveCapacity(minimumWritableBytes: length + 10)
        writeInteger(UInt8(0x81))
        writeFrameLength(length)
        prefix.withUTF8Buffer { _ = writeBytes($0) }
        writeBytes(payload)
        suffix.withUTF8Buffer { _ = writeBytes($0) }
    }

    private mutating func writeFrameLength(_ length: Int) {
        if length < 126 {
            writeInteger(UInt8(length))
        } else if length <= UInt16.max {
            writeInteger(UInt8(126))
            writeInteger(UInt16(length))
        } else {
            writeInteger(UInt8(127))
            writeInteger(UInt64(length))
        }
    }

    /// Writes an unmasked control frame: ping, pong or close, with at most 125 bytes.
    mutating func writeControlFrame(opcode: UInt8, _ payload: some Collection<UInt8>) {
        let payload = payload.prefix(125)
        writeInteger(UInt8(0x80) | opcode)
        writeFrameLength(payload.count)
        writeBytes(payload)
    }
}
