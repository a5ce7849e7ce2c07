import Foundation
import Testing

@testable import RoostCommand

@Suite struct SafeJSONTests {
    @Test(
        "JSON output has no character that controls a terminal or is invisible, and means the same",
        arguments: [
            "\u{9B}31mred", "\u{1B}[2Jgone", "a\u{202E}b\u{2066}c\u{2069}", "zero\u{200B}width\u{FEFF}",
            "joined \u{1F468}\u{200D}\u{1F469}",
            "tag \u{E0041}", "\u{7F}\u{80}\u{85}\u{A0}", "lines\u{2028}\u{2029}\n\t", "\u{115F}\u{3164}\u{FFA0}",
            "\u{E000}\u{10FFFF}", "\u{AD}\u{180E}", "\u{2800}\u{1D159}",
            "plain æøå 日本 \u{1F600} \"quoted\" \\u0041 \\", "",
        ])
    func escapes(text: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let json = String(decoding: try encoder.encode([text: [text]]), as: UTF8.self)
        let escaped = json.escapingInvisibleJSON
        #expect(try JSONDecoder().decode([String: [String]].self, from: Data(escaped.utf8)) == [text: [text]])
        let raw = escaped.unicodeScalars.filter { scalar in
            if scalar == "\n" { return false }
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: return true
            default: return scalar.properties.isDefaultIgnorableCodePoint || [0x2800, 0x1D159].contains(scalar.value)
            }
        }
        #expect(Array(raw) == [])
        #expect(text.unicodeScalars.contains { $0.value > 0x7E } || escaped == json)
    }
}
