extension String {
    /// The text without anything that a terminal obeys or that turns the reading direction round: control characters, escape sequences'
    /// beginnings, bidirectional overrides, invisible formatting. What others write must not be able to move the cursor or forge a line.
    ///
    /// - Parameter keepsNewlines: For texts that are shown over several lines.
    func safe(keepsNewlines: Bool = false) -> String {
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
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
}
