/// How many pages are asked for in one go.
///
/// A page may be empty and not the last, so that a cursor is followed until there is none. A broken server may give the same one for ever.
enum PageCount {
    /// The most pages for a number of rows: some more than these fill.
    static func max(forRows count: Int, of pageSize: Int) -> Int { 20 + count / pageSize }
}
