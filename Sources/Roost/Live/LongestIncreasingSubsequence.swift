/// Finds the items of a reordered list that can stay in place.
enum LongestIncreasingSubsequence {
    /// The indices of a longest increasing subsequence of distinct numbers (patience sorting).
    static func indices(of numbers: [Int]) -> Set<Int> {
        /// For each length, the index of the lowest number that ends a run of that length.
        var ends: [Int] = []
        /// For each index, the index before it in the run that it ends.
        var previous = [Int?](repeating: nil, count: numbers.count)
        for index in numbers.indices {
            let length = ends.partitioningIndex { numbers[$0] >= numbers[index] }
            if length > 0 { previous[index] = ends[length - 1] }
            if length < ends.count { ends[length] = index } else { ends.append(index) }
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
