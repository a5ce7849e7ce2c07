package import Foundation

/// Base 64 with the alphabet for URLs and without padding (RFC 4648 §5), in its one canonical form.
package enum Base64URL {
    /// Decodes a text; nil unless it is in canonical form.
    package static func decode(_ text: some Collection<UInt8>) -> Data? {
        var standard: [UInt8] = []
        standard.reserveCapacity(text.count + 3)
        for byte in text {
            switch byte {
            case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: standard.append(byte)
            }
        }
        while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
        // Foundation accepts unused bits that aren't 0: only the text that it would write itself is canonical.
        guard let data = Data(base64Encoded: Data(standard)), data.base64EncodedData().elementsEqual(standard) else { return nil }
        return data
    }

    /// Encodes bytes: four characters for every three bytes, and two or three for the rest.
    package static func encode(_ data: Data) -> String {
        var text = data.base64EncodedData()
        while text.last == UInt8(ascii: "=") { text.removeLast() }
        let symbols = text.lazy.map { byte in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: byte
            }
        }
        return String(decoding: symbols, as: UTF8.self)
    }
}
