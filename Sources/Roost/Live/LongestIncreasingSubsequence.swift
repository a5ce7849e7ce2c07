/// Finds the items of a reordered list that can stay in place.
enum LongestIncreasingSubsequence {
    /// The indices of a longest increasing subsequence of distinct numbers (patience sorting).
    static func indices(of numbers: [Int]) -> Set<Int> {
        /// For each length, the index of the lowest number that ends a run of that length.
        var ends: [Int] = []
        /// For each index, the index before it in the run that it ends.
        var previous = [Int?](repeating: nil, count: numbers.count)
        for index in numbers.indices {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < numbers[index] { low = middle + 1 } else { high = middle }
            }
            if low > 0 { previous[index] = ends[low - 1] }
            if low < ends.count { ends[low] = index } else { ends.append(index) }
        }
        var indices: Set<Int> = []
        var next = ends.last
        while let index = next {
            indices.insert(index)
            next = previous[index]
        }
        return indices
    }
}
