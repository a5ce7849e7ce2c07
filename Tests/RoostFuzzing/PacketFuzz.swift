import RoostAPI
import RoostServer

/// Packets of the bus, changed a little.
enum PacketFuzz {
    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        let packet = UntrustedBytes.packet(of: "general", json: Array(JSONFuzz.value(&random).utf8))
        return random.chance(8)
            ? packet : Mutation.of(packet, words: ["general", "\u{0}\u{0}\u{0}\u{1}", "\u{7f}\u{7f}", "\u{2}"], &random)
    }

    static func check(_ bytes: [UInt8]) { _ = UntrustedBytes.isPacket(bytes, of: "general") }
}
