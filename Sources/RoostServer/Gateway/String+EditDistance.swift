extension String {
    /// Returns the number of letters to insert, remove or change to turn one word into another: for suggestions.
    package func editDistance(to other: String) -> Int {
        // Bytes, because a character can have any number of them.
        let word = Array(other.utf8.prefix(64))
        var row = Array(0...word.count)
        for (i, letter) in utf8.prefix(64).enumerated() {
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
