extension String {
    /// The text without anything that a terminal obeys or that turns the reading direction round: control characters, escape sequences'
    /// beginnings, bidirectional overrides, invisible formatting. What others write must not be able to move the cursor or forge a line.
    ///
    /// It is for what is shown. What the user writes is sent as it is: see ``withoutControls(keeping:)``.
    ///
    /// - Parameter keepsNewlines: For texts that are shown over several lines.
    func safe(keepsNewlines: Bool = false) -> String {
        var result = String.UnicodeScalarView()
        /// How many more tags may follow a black flag, which they make that of a region (Unicode TS 51, ED-14a): anywhere else they hide text.
        var tags = 0
        for scalar in unicodeScalars {
            if (0xE0020...0xE007F).contains(scalar.value) {
                guard tags > 0 else { continue }
                tags = scalar.value == 0xE007F ? 0 : tags - 1
                result.append(scalar)
                continue
            }
            tags = scalar == "\u{1F3F4}" ? 7 : 0
            switch scalar {
            case "\n": result.append(keepsNewlines ? "\n" : " ")
            case "\t": result.append(contentsOf: "    ".unicodeScalars)
            // Joiners make emoji of several parts, and are needed to write some languages.
            case "\u{200C}", "\u{200D}": result.append(scalar)
            default:
                switch scalar.properties.generalCategory {
                case .control, .format, .surrogate, .privateUse, .unassigned: break
                case .lineSeparator, .paragraphSeparator: result.append(" ")
                default: result.append(scalar)
                }
            }
        }
        return String(result)
    }

    /// The text without control characters, which are keys and not text where they are typed.
    func withoutControls(keeping kept: Set<Unicode.Scalar> = []) -> String {
        String(String.UnicodeScalarView(unicodeScalars.filter { $0.properties.generalCategory != .control || kept.contains($0) }))
    }
}
