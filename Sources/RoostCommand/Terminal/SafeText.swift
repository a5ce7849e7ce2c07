extension String {
    /// The text without anything that controls a terminal or reverses the reading direction: control characters, the beginnings of escape
    /// sequences, bidirectional overrides, invisible characters. Text by others must not be able to move the cursor or forge a line.
    ///
    /// It is for display. The user's own text is sent unchanged: see ``withoutControls(keeping:)``.
    ///
    /// - Parameter keepsNewlines: For texts shown over several lines.
    func safe(keepsNewlines: Bool = false) -> String {
        var result = String.UnicodeScalarView()
        /// How many more tags may follow a black flag to make it that of a region (Unicode TS 51, ED-14a): anywhere else they hide text.
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
            // Joiners combine parts of emoji, and are needed to write some languages.
            case "\u{200C}", "\u{200D}": result.append(scalar)
            case _ where scalar.properties.isVariationSelector:
                // It varies the visible character before it, as in emoji, and hides nothing there.
                if let last = result.last, !last.properties.isWhitespace, !last.showsNothing { result.append(scalar) }
            default:
                switch scalar.properties.generalCategory {
                case .control, .format, .surrogate, .privateUse, .unassigned: break
                case .lineSeparator, .paragraphSeparator: result.append(" ")
                default: if !scalar.showsNothing { result.append(scalar) }
                }
            }
        }
        return String(result)
    }

    /// The text without control characters, which act as keys when typed.
    func withoutControls(keeping kept: Set<Unicode.Scalar> = []) -> String {
        String(String.UnicodeScalarView(unicodeScalars.filter { $0.properties.generalCategory != .control || kept.contains($0) }))
    }
}
