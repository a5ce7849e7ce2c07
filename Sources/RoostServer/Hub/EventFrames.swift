import NIOCore
import RoostAPI
import RoostCore

/// The bytes of a batch's events, ready to be written to any number of sockets.
///
/// Each event is encoded once. Events of one audience that follow one another in a batch stand in one buffer, so that a socket gets them in
/// one write. A channel's order is kept. Two things divide what stands together: a change of an audience, and an event of a user's own stream,
/// since a user's read position counts messages of a channel, and must not come before or after others of them than it was made between.
struct EventFrames {
    /// One step of delivery, in order.
    enum Step: Sendable {
        case send(Audience, Frames)
        case change(Notice)
        case reply(SocketAddress, [UInt8])
    }

    /// The same events twice: as who watches gets them, and as who doesn't.
    struct Frames: Sendable {
        var watching: ByteBuffer
        var notification: ByteBuffer
        var eventCount: Int
    }

    static func steps(for output: [Hub.Output]) -> [Step] {
        var steps: [Step] = []
        /// Where in `steps` the buffer of an audience stands that may still grow.
        var open: [Audience: Int] = [:]
        for item in output {
            let notice: Notice
            switch item {
            case .notice(let told): notice = told
            case .reply(let address, let payload):
                steps.append(.reply(address, payload))
                continue
            }
            guard case .event(let event, let audience) = notice else {
                open.removeAll(keepingCapacity: true)
                steps.append(.change(notice))
                continue
            }
            var json = JSONBytes(capacity: 512)
            event.writeMembers(to: &json)
            let members = json.bytes
            if case .user = audience { open.removeAll(keepingCapacity: true) }
            if let index = open[audience], case .send(_, var frames) = steps[index] {
                // Taken out while it grows, so that the buffer isn't copied.
                steps[index] = .change(notice)
                frames.append(members)
                steps[index] = .send(audience, frames)
            } else {
                var frames = Frames(watching: ByteBuffer(), notification: ByteBuffer(), eventCount: 0)
                frames.append(members)
                if case .channel = audience { open[audience] = steps.count }
                steps.append(.send(audience, frames))
            }
        }
        return steps
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
