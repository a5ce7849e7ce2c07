/// How many pages are requested in a row.
///
/// A page may be empty without being the last, so cursors are followed until there is none. A broken server may return the same cursor endlessly.
enum PageCount {
    /// The maximum number of pages for a number of rows: some more than these fill.
    static func max(forRows count: Int, of pageSize: Int) -> Int { 20 + count / pageSize }
}
