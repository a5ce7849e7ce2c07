#if Cluster
import RoostAPI

/// The names of topics on NATS.
///
/// `roost.channel.<id>`, `roost.user.<id>`, `roost.nodes` and `roost.node.<id>`. An id may contain characters with a meaning in NATS: dots,
/// spaces, `*` and `>`. So its UTF-8 is written in base64 with `-` and `_`, without padding: only letters, digits, `-` and `_`. Names are
/// never parsed: each subscription knows its topic.
struct NATSSubjects: Sendable {
    let prefix: String

    /// - Throws: ``BusFailure`` if the prefix isn't a single token of a subject, or is too long.
    init(prefix: String) throws(BusFailure) {
        guard (1...64).contains(prefix.utf8.count), prefix.utf8.allSatisfy({ Self.alphabet.contains($0) }) else {
            throw BusFailure(message: "the prefix of NATS subjects must be 1 to 64 letters, digits, - or _")
        }
        self.prefix = prefix
    }

    func subject(of topic: BusTopic) -> String {
        switch topic {
        case .stream(.channel(let id)): "\(prefix).channel.\(Self.encode(id.rawValue))"
        case .stream(.user(let id)): "\(prefix).user.\(Self.encode(id.rawValue))"
        case .nodes: "\(prefix).nodes"
        case .node(let id): "\(prefix).node.\(Self.encode(id.rawValue))"
        }
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ text: String) -> String {
        let length = text.utf8.count
        return String(unsafeUninitializedCapacity: (length * 4 + 2) / 3) { output in
            var bits: UInt32 = 0
            var bitCount: UInt32 = 0
            var written = 0
            for byte in text.utf8 {
                bits = bits << 8 | UInt32(byte)
                bitCount += 8
                while bitCount >= 6 {
                    bitCount -= 6
                    output[written] = alphabet[Int(bits >> bitCount & 0x3F)]
                    written += 1
                }
                // Bits already written are dropped, so nothing overflows.
                bits &= (1 << bitCount) - 1
            }
            if bitCount > 0 {
                output[written] = alphabet[Int(bits << (6 - bitCount) & 0x3F)]
                written += 1
            }
            return written
        }
    }
}
#endif
