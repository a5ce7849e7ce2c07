extension RandomAccessCollection {
    /// The first index whose element belongs to the second part of a collection, found by binary search; `endIndex` if none does.
    ///
    /// - Parameter belongsInSecondPart: False for the elements up to some index, and true from there on.
    package func partitioningIndex(where belongsInSecondPart: (Element) throws -> Bool) rethrows -> Index {
        var (low, count) = (startIndex, self.count)
        while count > 0 {
            let half = count / 2
            let middle = index(low, offsetBy: half)
            if try belongsInSecondPart(self[middle]) {
                count = half
            } else {
                low = index(after: middle)
                count -= half + 1
            }
        }
        return low
    }
}
