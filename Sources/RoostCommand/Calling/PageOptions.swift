import ArgumentParser
import Roost
import RoostAPI

/// The requested part of a list.
struct PageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Rows per page, 1 to 100.", valueName: "rows"), transform: NumberArgument.pageLimit)
    var limit: Int?
    @Option(help: "The nextCursor of the previous page, as --json prints it.") var cursor: String?
    @Flag(help: "All pages, one after another.") var all = false

    /// The options, by the names of the fields that they set.
    static let names = ["limit": "--limit", "cursor": "--cursor"]

    /// Fetches a page, or all of them as one.
    ///
    /// - Parameter operation: Makes the call for a page from its limit and cursor.
    func read<Call: RoostAPI.Operation, Item>(
        through connection: CallConnection, _ operation: (_ limit: Int?, _ cursor: String?) -> Call
    ) async throws -> Page<Item> where Call.Response == Page<Item> {
        // With `--all`, as few responses as possible.
        let limit = limit ?? (all ? Limits.memberPage.max : nil)
        var page = try await connection.call(operation(limit, cursor))
        while all, let cursor = page.nextCursor {
            let next = try await connection.call(operation(limit, cursor))
            page.items += next.items
            let known = Set((page.users ?? []).map(\.userId))
            let users = (page.users ?? []) + (next.users ?? []).filter { !known.contains($0.userId) }
            page.users = users.isEmpty ? nil : users.sorted { $0.userId < $1.userId }
            page.nextCursor = next.nextCursor
        }
        return page
    }

    /// Prints a list: its lines, or the page as JSON. Standard error says if there is more, or if there is nothing.
    func show<Item>(_ page: Page<Item>, with options: CallOptions, none: String, _ lines: ([Item]) -> [String]) throws {
        try options.show(page, page.items.isEmpty ? [] : lines(page.items))
        guard !options.json else { return }
        if page.isEmptyEnd { Output.note(none) }
        if page.nextCursor != nil { Output.note("There are more rows: --all shows all of them.") }
    }
}

extension Page {
    /// Whether nothing was found, and there is no more.
    var isEmptyEnd: Bool { items.isEmpty && nextCursor == nil }
}
