import RoostAPI

extension String {
    /// JSON text with everything that controls a terminal or is invisible written as `\uXXXX`: control characters, those that reverse the
    /// reading direction, invisible ones. It is the same JSON value.
    ///
    /// Such characters only occur inside strings, where the escape is valid; line ends between the values stay.
    var escapingInvisibleJSON: String {
        guard unicodeScalars.contains(where: \.isInvisible) else { return self }
        var result = ""
        for scalar in unicodeScalars {
            guard scalar.isInvisible else {
                result.unicodeScalars.append(scalar)
                continue
            }
            for unit in String(scalar).utf16 {
                result += "\\u" + String(unit, radix: 16, width: 4)
            }
        }
        return result
    }
}

extension Unicode.Scalar {
    /// Whether it is invisible, or controls the display. Spaces and line ends don't count.
    fileprivate var isInvisible: Bool {
        if isASCII { return value == 0x7F || (value < 0x20 && self != "\n") }
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: return true
        default: return showsNothing
        }
    }

    /// Whether it shows nothing by itself, whatever its category: fillers, variation selectors, a cell of Braille without dots, a null note head.
    var showsNothing: Bool { properties.isDefaultIgnorableCodePoint || value == 0x2800 || value == 0x1D159 }
}
