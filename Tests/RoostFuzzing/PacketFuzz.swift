import RoostAPI
import RoostServer

/// Packets of the bus, slightly mutated, for a node that follows their stream.
enum PacketFuzz {
    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        var packet = UntrustedBytes.packet(of: "general", json: Array(JSONFuzz.value(&random).utf8))
        // The largest or smallest number of 64 bits.
        if random.chance(4) {
            let place = random.below(packet.count - 8)
            packet.replaceSubrange(place..<place + 8, with: [random.pick([0x7f, 0x80, 0xff])] + [UInt8](repeating: 0xff, count: 7))
            return packet
        }
        return random.chance(8)
            ? packet : Mutation.of(packet, words: ["general", "\u{0}\u{0}\u{0}\u{1}", "\u{7f}\u{7f}", "\u{2}"], &random)
    }

    static func check(_ bytes: [UInt8]) { _ = UntrustedBytes.deliver(bytes, of: "general") }
}

/// Another node's ephemeral news, slightly mutated.
enum NewsFuzz {
    private static let words = [
        "typing", "read", "signal", "markedUnread", "profileShown", "readSeq", "9223372036854775807", "-1", "general", "ann", "{",
        "}", "[", "]",
        "null",
    ]

    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        Mutation.of(UntrustedBytes.news(in: "general", of: "ann", random.below(6)), words: words, &random)
    }

    static func check(_ bytes: [UInt8]) throws {
        guard let count = UntrustedBytes.signalCount(bytes, in: "general", of: "ann"), count > 1 else { return }
        throw FuzzFinding("One piece of news makes \(count) signals", bytes)
    }
}

/// Another node's presence in a channel, slightly mutated.
enum PresenceFuzz {
    private static let words = [
        "present", "onlineBeyond", "9223372036854775807", "-1", "\"ann\",", "other", "general", "{", "}", "[", "]",
    ]

    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        let message = UntrustedBytes.presence(in: "general", node: random.pick(["other", "third"]))
        return Mutation.of(message, words: words, &random)
    }

    static func check(_ bytes: [UInt8]) throws {
        guard let count = UntrustedBytes.onlineCount(bytes, in: "general"), count < 0 else { return }
        throw FuzzFinding("\(count) members are online", bytes)
    }
}
