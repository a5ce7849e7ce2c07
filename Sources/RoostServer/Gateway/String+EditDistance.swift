extension [String] {
    /// The nearest one to a word, if it is close enough to be a typo: at most a third of the word's letters differ, or two.
    package func nearest(to word: String) -> String? {
        let nearest = map { (name: $0, distance: $0.editDistance(to: word)) }.min { $0.distance < $1.distance }
        guard let nearest, nearest.distance <= Swift.max(2, word.utf8.prefix(String.comparedBytesMax).count / 3) else { return nil }
        return nearest.name
    }
}

extension String {
    /// How many bytes of a word are compared: more than any name has.
    fileprivate static let comparedBytesMax = 64

    /// Returns the number of letters to insert, remove or change to turn one word into another: for suggestions.
    package func editDistance(to other: String) -> Int {
        // Bytes, because a character can have any number of them.
        let word = Array(other.utf8.prefix(Self.comparedBytesMax))
        var row = Array(0...word.count)
        for (i, letter) in utf8.prefix(Self.comparedBytesMax).enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for j in word.indices {
                let changed = diagonal + (word[j] == letter ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = Swift.min(changed, row[j] + 1, diagonal + 1)
            }
        }
        return row[word.count]
    }
}
