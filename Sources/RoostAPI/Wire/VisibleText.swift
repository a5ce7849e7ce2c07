import Foundation

/// The characters that ids and names can't have: invisible ones, and those that change the direction of the text around them. With either,
/// two texts can look the same, or one can read as another. A message's text may contain them as long as it has a visible character.

extension Identifier {
    /// Throws `invalid_argument` with the field's name if the string isn't allowed for a new id.
    ///
    /// Stricter than ``validate(field:)``, which also accepts existing ids: no invisible characters, none that change the direction of
    /// text, no space except U+0020, no space at either end, and no Korean syllable with its final consonant apart, which isn't form C.
    package func validateNew(field: String) throws(RoostError) {
        try validate(field: field)
        guard isInFormC else { throw .notInFormC(field) }
        for scalar in rawValue.unicodeScalars {
            guard !scalar.isInvisible else {
                throw .invalidArgument(field, "must not contain invisible characters, such as \(scalar.codePoint)")
            }
            guard !scalar.properties.isWhitespace || scalar == " " else {
                throw .invalidArgument(field, "must not contain \(scalar.codePoint): the only space allowed is U+0020")
            }
        }
        guard rawValue.first != " ", rawValue.last != " " else {
            throw .invalidArgument(field, "must not begin or end with a space")
        }
    }
}

extension Limits {
    /// Throws unless a text can be the display name of a user or a channel; an empty one removes the name.
    ///
    /// Joiners (U+200C, U+200D), variation selectors and the tags of flags are part of how some languages and emoji are written, and are
    /// allowed between visible characters.
    package static func check(displayName: String?, field: String = "displayName") throws(RoostError) {
        guard let displayName else { return }
        try check(displayName, length: displayNameLength, field: field)
        if displayName.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { return }
        let scalars = displayName.unicodeScalars
        guard scalars.first?.properties.isWhitespace != true, scalars.last?.properties.isWhitespace != true else {
            throw .invalidArgument(field, "must not begin or end with white space")
        }
        var isAfterVisible = false
        var flag = FlagTags()
        for scalar in scalars {
            let isJoining = scalar.joins && (!scalar.isTag || flag.takes(scalar))
            if !scalar.isTag { flag.begin(after: scalar) }
            guard !scalar.isInvisible || (isJoining && isAfterVisible) else {
                throw .invalidArgument(field, "must not contain invisible characters, such as \(scalar.codePoint)")
            }
            isAfterVisible = !scalar.properties.isWhitespace && !scalar.isJoiner
        }
        guard scalars.last?.isJoiner != true else {
            throw .invalidArgument(field, "must not end with an invisible character")
        }
    }

    /// Returns a token's name without the characters that a display name can't have, so nobody is locked out because of their name.
    package static func displayName(fromClaim name: String?) -> String? {
        guard let name else { return nil }
        // The second attempt also removes tags, which may not be a flag's.
        for mayHaveTags in [true, false] {
            let kept = name.unicodeScalars.filter { scalar in
                !scalar.isInvisible || (scalar.joins && (mayHaveTags || !scalar.isTag))
            }
            let trimmed = String(String.UnicodeScalarView(kept)).trimmingCharacters(in: .whitespacesAndNewlines)
            if (try? check(displayName: trimmed)) != nil { return trimmed }
        }
        return nil
    }
}

extension String {
    /// Whether at least one character is visible, by the same rule as in names: neither white space nor invisible.
    var hasVisibleCharacter: Bool {
        unicodeScalars.contains { !$0.isInvisible && !$0.properties.isWhitespace }
    }
}

/// The rules as patterns of the API description, as far as a pattern can express them. They cover the characters of the Basic Multilingual
/// Plane.
package enum VisibleText {
    private static let controls = "\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029"
    private static let invisible =
        controls
        + "\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f"
        + "\\u2800\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff"
    private static let otherSpaces = "\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000"
    private static let ofNewIdentifiers = "/," + invisible + otherSpaces + "\\u200c\\u200d\\ufe00-\\ufe0f"

    package static let textPattern = "^[^\\u0000]*$"
    // `.` and `..` are excluded without a look-ahead, which not every reader of a description has: an id begins with three dots, or with
    // up to two and something else.
    package static let identifierPattern = "^(\\.{3}|\\.{0,2}[^./,\(controls)])[^/,\(controls)]*$"
    package static let newIdentifierPattern =
        "^((\\.{3}|\\.{0,2}[^ .\(ofNewIdentifiers)])([^\(ofNewIdentifiers)]*[^ \(ofNewIdentifiers)])?"
        + "|\\.{1,2} [^\(ofNewIdentifiers)]*[^ \(ofNewIdentifiers)])$"
    package static let displayNamePattern = "^([^ \(invisible)\(otherSpaces)]([^\(invisible)]*[^ \(invisible)\(otherSpaces)])?)?$"
}

extension Unicode.Scalar {
    /// Whether it is invisible by itself, or only changes how its neighbours are shown.
    fileprivate var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        // A cell of Braille without dots, and a null note head.
        default: properties.isDefaultIgnorableCodePoint || properties.isNoncharacterCodePoint || value == 0x2800 || value == 0x1D159
        }
    }

    /// Whether it joins or varies visible characters, as some scripts and emoji require.
    fileprivate var joins: Bool {
        isJoiner || properties.isVariationSelector || isTag
    }

    fileprivate var isTag: Bool { (0xE0020...0xE007F).contains(value) }

    fileprivate var isJoiner: Bool { value == 0x200C || value == 0x200D }

    fileprivate var codePoint: String { "U+" + String(value, radix: 16, uppercase: true, width: 4) }
}

/// The tags after a black flag, which make it the flag of a region (Unicode TS 51, ED-14a): up to six lowercase letters and digits, and an
/// end tag. Anywhere else they would hide text in a name.
private struct FlagTags {
    private var isOpen = false
    private var count = 0

    /// The letters and digits of a region, as in `gbsct`, and the end tag.
    private static let countMax = 7
    private static let flag: UInt32 = 0x1F3F4
    private static let end: UInt32 = 0xE007F

    /// Handles a character that isn't a tag.
    mutating func begin(after scalar: Unicode.Scalar) { (isOpen, count) = (scalar.value == Self.flag, 0) }

    /// Returns whether a tag is allowed here.
    mutating func takes(_ scalar: Unicode.Scalar) -> Bool {
        count += 1
        guard isOpen, count <= Self.countMax else { return false }
        if scalar.value == Self.end { isOpen = false }
        return scalar.value == Self.end || (0xE0061...0xE007A).contains(scalar.value) || (0xE0030...0xE0039).contains(scalar.value)
    }
}
