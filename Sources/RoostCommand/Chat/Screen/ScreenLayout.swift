import Foundation
import Roost
import RoostAPI

/// The lines of a screen, and the cursor's position.
struct ScreenFrame: Hashable {
    var lines: [String]
    var cursorColumn: Int
    /// The scroll that was possible: less than requested if the scrollback is shorter.
    var scroll: Int
    /// The same for the panel.
    var panelScroll: Int
    /// Whether the oldest message is in view.
    var showsOldest: Bool
    /// Whether the line above the first unread message is in view.
    var showsMarker: Bool
}

/// Draws a ``ScreenState`` as lines of text. It reads no clock and no terminal, so tests need neither.
struct ScreenLayout {
    let width: Int
    var calendar = Calendar.current

    /// - Parameter now: For the seconds until the next attempt to connect.
    func frame(of state: ScreenState, height: Int, now: Date) -> ScreenFrame {
        let room = max(1, height - 3)
        var state = state
        if let notice = state.notice, state.panel.lines.isEmpty, !StatusLine.hasRoom(for: notice, state, now: now, width: width) {
            // It fitted at first, but the rest of the status line has grown since.
            (state.notice, state.panel) = (nil, Panel([notice.safe()]))
        }
        let (panel, panelScroll) = panel(state.panel, height: Self.panelHeight(height))
        let (visible, scroll, showsOldest) = scrollback(state, height: room - panel.count)
        let body = visible + panel
        let filler = Array(repeating: "", count: max(0, room - body.count))
        // A very narrow screen has no columns for a prompt.
        let prompt = width < 6 ? "" : "> "
        let input = state.editor.visible(in: prompt.isEmpty ? max(1, width) : width - 3)
        let lines = [header(state)] + filler + body + [StatusLine.text(state, now: now, width: width), prompt + input.text]
        return ScreenFrame(
            // On very low screens the input matters most, then the lines above it.
            lines: Array(lines.suffix(max(1, height))), cursorColumn: max(0, min(width - 1, prompt.count + input.column)),
            scroll: scroll, panelScroll: panelScroll, showsOldest: showsOldest, showsMarker: visible.contains(markerLine))
    }

    // MARK: The panel

    private static func panelHeight(_ height: Int) -> Int { max(1, height - 4) }

    /// Whether a panel is longer than its space.
    func isScrollable(_ panel: Panel, height: Int) -> Bool { wrapped(panel).count > Self.panelHeight(height) }

    private func wrapped(_ panel: Panel) -> [String] { panel.lines.flatMap { $0.wrapped(to: width) } }

    /// Returns the output of a command. If it doesn't fit, the last line shows which part this is.
    private func panel(_ panel: Panel, height: Int) -> (lines: [String], scroll: Int) {
        let lines = wrapped(panel)
        guard lines.count > height else { return (lines.map(Style.bold.applied(to:)), 0) }
        // A very low screen has a single line for it.
        let count = max(1, height - 1)
        let scroll = min(max(0, panel.scroll), lines.count - count)
        let shown = lines[scroll..<scroll + count]
        let place =
            "lines \(scroll + 1) to \(scroll + shown.count) of \(lines.count): PageDown, PageUp, ↓ and ↑ scroll; any other key closes"
        let rest = height > count ? [Style.dim.applied(to: place.truncated(to: width))] : []
        return (shown.map(Style.bold.applied(to:)) + rest, scroll)
    }

    private func header(_ state: ScreenState) -> String {
        var parts = ["#\(state.channel.rawValue.safe())"]
        if let name = state.displayName, !name.isEmpty { parts.append(name) }
        if let count = state.memberCount {
            parts.append("\(count) \(count == 1 ? "member" : "members")" + (state.onlineCount.map { ", \($0) online" } ?? ""))
        }
        if state.hasLeft { parts.append("you are no longer a member") }
        if !state.unreadElsewhere.isEmpty {
            parts.append("unread: " + state.unreadElsewhere.map { "\($0.name) \($0.count)" }.joined(separator: ", "))
        }
        return Style.inverse.applied(to: (" " + parts.joined(separator: " · ")).truncated(to: width).padded(to: width))
    }

    // MARK: The scrollback

    /// The part in view. Only as many messages as needed are laid out, from the newest upwards.
    private func scrollback(_ state: ScreenState, height: Int) -> (lines: [String], scroll: Int, showsOldest: Bool) {
        let wanted = state.scroll + height
        var blocks: [[String]] = []
        var count = 0
        var index = state.rows.count
        let nameWidth = nameWidth(state.rows)
        let firstNew = firstNew(state.rows, after: state.marker)
        while index > 0, count < wanted {
            index -= 1
            let block = lines(state.rows, at: index, isFirstNew: index == firstNew, nameWidth: nameWidth)
            blocks.append(block)
            count += block.count
        }
        let showsOldest = index == 0
        if showsOldest {
            let top = state.hasOlder ? "… older messages: PageUp" : "the beginning of #\(state.channel.rawValue.safe())"
            blocks.append([Style.dim.applied(to: top.truncated(to: width))])
            count += 1
        }
        let all = blocks.reversed().flatMap { $0 }
        let scroll = min(state.scroll, max(0, all.count - height))
        return (Array(all.dropLast(scroll).suffix(height)), scroll, showsOldest)
    }

    /// All lines of the given rows.
    func block(of rows: [ScreenState.Row], marker: Seq?) -> [String] {
        let (nameWidth, firstNew) = (nameWidth(rows), firstNew(rows, after: marker))
        return rows.indices.flatMap { lines(rows, at: $0, isFirstNew: $0 == firstNew, nameWidth: nameWidth) }
    }

    /// At most a third of the screen: names are shown next to texts, not instead of them.
    private func nameWidth(_ rows: [ScreenState.Row]) -> Int {
        min(14, width / 3, max(3, rows.suffix(200).map(\.name.columnWidth).max() ?? 3))
    }

    private func firstNew(_ rows: [ScreenState.Row], after marker: Seq?) -> Int? {
        marker.flatMap { marker in rows.firstIndex { row in !row.isMine && row.seq.map { $0 > marker } ?? false } }
    }

    private func lines(_ rows: [ScreenState.Row], at index: Int, isFirstNew: Bool, nameWidth: Int) -> [String] {
        let row = rows[index]
        var lines: [String] = []
        if index == 0 || !calendar.isDate(row.date, inSameDayAs: rows[index - 1].date) {
            lines.append(Style.dim.applied(to: rule(MessageTime.day(of: row.date, in: calendar))))
        }
        if isFirstNew { lines.append(markerLine) }
        return lines + message(row, nameWidth: nameWidth)
    }

    private func message(_ row: ScreenState.Row, nameWidth: Int) -> [String] {
        let time = MessageTime.minute(of: row.date, in: calendar)
        guard width >= Self.widthForNamesBeside else { return narrowMessage(row, time: time) }
        let name = row.name.truncated(to: nameWidth).padded(to: nameWidth)
        let indent = time.count + nameWidth + 3
        let (text, style) = content(of: row)
        let texts = MentionMarks.styled(text.wrapped(to: width - indent), in: style)
        return texts.enumerated().map { number, line in
            let start =
                number == 0
                ? "\(Style.dim.applied(to: time)) \(Style.name(row.id.sender.rawValue).applied(to: name))  "
                : String(repeating: " ", count: indent)
            return start + line
        }
    }

    /// The width from which a name is next to the text.
    private static let widthForNamesBeside = 30

    /// A message with the name on its own line.
    private func narrowMessage(_ row: ScreenState.Row, time: String) -> [String] {
        let (text, style) = content(of: row)
        let head = "\(time) \(row.name)".truncated(to: width)
        return [Style.name(row.id.sender.rawValue).applied(to: head)] + MentionMarks.styled(text.wrapped(to: width), in: style)
    }

    private func content(of row: ScreenState.Row) -> (text: String, style: Style?) {
        switch row.state {
        case .pending: (row.text + " …", .dim)
        case .waiting(let error): (row.text + "\n… not yet: \(error.summaryLine) /discard drops it", .dim)
        case .failed(let error): (row.text + "\n✗ not sent: \(error.summaryLine) /retry or /discard", .alert)
        case .forAnotherServer: (row.text + "\n✗ not sent: it was meant for another server's data. /discard drops it", .alert)
        case .sent:
            switch row.change {
            case .pending: (body(of: row) + " …", row.isDeleted ? .dim : style(of: row))
            case .waiting(let error): (body(of: row) + "\n… not yet: \(error.summaryLine) /discard drops it", .dim)
            case .failed(let error): (body(of: row) + "\n✗ not changed: \(error.summaryLine) /retry or /discard", .alert)
            case .forAnotherServer:
                (body(of: row) + "\n✗ not changed: the change was meant for another server's data. /discard drops it", .alert)
            case nil, .sent: (body(of: row) + (row.isDeleted ? "" : readers(of: row)), style(of: row))
            }
        }
    }

    private func body(of row: ScreenState.Row) -> String {
        if row.isDeleted { return "message deleted" }
        return (row.sort.map { "[\($0)] " } ?? "") + row.text + (row.isEdited ? " (edited)" : "")
            + (row.unmentioned.isEmpty ? "" : "\n· not mentioned: \(row.unmentioned.joined(separator: ", "))")
    }

    private func style(of row: ScreenState.Row) -> Style? { row.isDeleted ? .dim : row.isForUser ? .bold : nil }

    private func readers(of row: ScreenState.Row) -> String {
        switch row.readers.count {
        case 0: ""
        case 1...3: " ✓ read by \(row.readers.joined(separator: ", "))"
        default: " ✓ read by \(row.readers.count)"
        }
    }

    /// The line above the first unread message.
    private var markerLine: String { Style.alert.applied(to: rule("new")) }

    /// A line across the screen with a word near its left end.
    private func rule(_ text: String) -> String {
        let start = "── \(text) ".truncated(to: width)
        return start + String(repeating: "─", count: max(0, width - start.columnWidth))
    }
}
