import Foundation
import RoostAPI
import Testing

@testable import Roost
@testable import RoostCommand

@Suite struct ScreenLayoutTests {
    /// The time at which all lines are drawn.
    private let now = Timestamp(milliseconds: 1_772_368_205_250)

    /// The lines of a screen, without their styles.
    private func lines(_ state: ScreenState, width: Int = 80, height: Int = 24) -> [String] {
        ScreenLayout(width: width).frame(of: state, height: height, now: now.date).lines.map {
            $0.replacing(#/\u{1B}\[[0-9;]*m/#, with: "")
        }
    }

    @Test("a panel that is too long is shown in part, says which, and scrolls to its end and no further")
    func panel() {
        var state = ScreenState(channel: "team")
        state.panel = Panel((1...50).map { "line \($0)" })
        let layout = ScreenLayout(width: 80)
        #expect(layout.isScrollable(state.panel, height: 24) && !layout.isScrollable(Panel(["one"]), height: 24))
        #expect(lines(state).contains("line 1") && lines(state).contains("line 19") && !lines(state).contains("line 20"))
        #expect(lines(state).contains { $0.hasPrefix("lines 1 to 19 of 50: PageDown") })
        state.panel.scroll = 7
        #expect(!lines(state).contains("line 7") && lines(state).contains("line 8") && lines(state).contains("line 26"))
        state.panel.scroll = 1000
        let frame = layout.frame(of: state, height: 24, now: .now)
        #expect(frame.panelScroll == 31 && lines(state).contains("line 50"))
        state.panel.scroll = -3
        #expect(layout.frame(of: state, height: 24, now: .now).panelScroll == 0)
    }

    @Test("a notice beside a short status can still be read entirely beside a longer status")
    func longerStatus() {
        let notice = "/members: There is no connection to the server. (not_connected)"
        var state = ScreenState(channel: "team")
        state.status = .connecting
        state.showResult([notice], width: 80)
        #expect(state.notice == notice && lines(state)[22] == "○ connecting … · \(notice)")
        state.status = .waiting(until: now.after(seconds: 10), because: WaitingReason(.network, "Connection reset by peer"))
        let (above, status) = (lines(state)[21], lines(state)[22])
        #expect(above == notice && status.hasPrefix("○ reconnecting in 10 s") && !status.contains("/members"))
    }

    @Test("a panel fits on the lowest screens", arguments: [4, 5, 6, 7])
    func lowScreens(height: Int) {
        var state = ScreenState(channel: "team")
        state.panel = Panel((1...50).map { "line \($0)" })
        #expect(lines(state, height: height).count == height && lines(state, height: height).contains("line 1"))
        state.panel.scroll = 50
        #expect(lines(state, height: height).contains("line 50"))
    }

    @Test("every command and its text can be read in /help, however narrow the screen is", arguments: [30, 60, 80, 200])
    func help(width: Int) {
        let lines = ChatHelp.screenLines(width: width)
        #expect(lines.allSatisfy { $0.columnWidth <= width })
        let text = lines.joined(separator: " ").split(separator: " ").joined(separator: " ")
        for command in ChatHelp.commands where command.name != .discard { #expect(text.contains("/" + command.name.rawValue)) }
        #expect(!lines.contains { $0.hasSuffix("…") })
    }

    @Test("the reason of a lost connection fits in 80 columns")
    func reason() {
        var state = ScreenState(channel: "team")
        let reason = "nothing answers at 127.0.0.1, port 8080: Connection refused"
        state.status = .waiting(until: now.after(seconds: 10), because: WaitingReason(.network, reason))
        #expect(lines(state)[22].hasSuffix(reason) && lines(state, width: 200)[22].contains("your messages wait (\(reason))"))
    }

    @Test("the number of unsent messages fits in 80 columns beside the reason of a lost connection", arguments: [false, true])
    func unsent(isInMemory: Bool) {
        var state = state()
        state.rows[0].state = .pending
        state.isInMemory = isInMemory
        let reason = "nothing answers at 127.0.0.1, port 8080: Connection refused"
        state.status = .waiting(until: now.after(seconds: 10), because: WaitingReason(.network, reason))
        let lost = isInMemory ? " message, lost when you quit" : ""
        #expect(lines(state)[22].hasPrefix("○ retry in 10 s · 1 unsent\(lost): nothing answers"))
        let waits = isInMemory ? "" : "; your messages wait"
        let whole = isInMemory ? "1 unsent message, lost when you quit" : "1 unsent message"
        #expect(lines(state, width: 200)[22] == "○ reconnecting in 10 s\(waits) · \(whole) (\(reason))")
    }

    /// A channel with one message of a user with a long name.
    private func state(text: String = "good morning everybody") -> ScreenState {
        var state = ScreenState(channel: "team")
        state.rows = [
            ScreenState.Row(
                id: MessageItem.ID(sender: "bartholomew", clientId: "1"), name: "Bartholomew Longname", text: text, date: .now,
                state: .sent,
                isMine: false, isEdited: false, isDeleted: false)
        ]
        return state
    }

    @Test("messages can be read on a screen of any width, beside names or below them", arguments: [12, 16, 20, 22, 29, 30, 36, 80])
    func narrow(width: Int) {
        let shown = lines(state(), width: width)
        #expect(shown.allSatisfy { $0.columnWidth <= width })
        let text = shown.dropFirst().joined(separator: " ").split(separator: " ").joined(separator: " ")
        for word in ["good", "morning", "everybody"] { #expect(text.contains(word)) }
        #expect(width < 30 || shown.contains { $0.contains("Barthol") && $0.contains("good") })
    }

    @Test("a frame fits on the smallest screens, and includes the input", arguments: [(1, 1), (2, 2), (5, 3), (10, 4), (19, 2)])
    func small(width: Int, height: Int) {
        var state = state(text: "hello")
        state.editor.text = "x"
        let frame = ScreenLayout(width: width).frame(of: state, height: height, now: .now)
        #expect(frame.lines.count == height && (0..<width).contains(frame.cursorColumn))
        // The cursor needs its own column.
        #expect(width == 1 || frame.lines.last?.hasSuffix("x") == true)
    }

    @Test("AM-30 an unsent change is marked, and a refused one says why and what to do")
    func changes() {
        var state = state(text: "hello")
        state.rows[0].change = .pending
        #expect(lines(state).contains { $0.hasSuffix("hello …") })
        state.rows[0].change = .failed(RoostError(.frozen, "The channel is frozen."))
        #expect(lines(state).contains { $0.hasSuffix("hello") })
        #expect(
            lines(state, width: 120).contains { $0.contains("✗ not changed: The channel is frozen. (frozen) /retry or /discard") })
        state.rows[0].isDeleted = true
        state.rows[0].change = .pending
        #expect(lines(state).contains { $0.hasSuffix("message deleted …") })
    }

    @Test("the frame knows whether the line above the first unread message is in view")
    func marker() {
        var state = state(text: "one")
        state.rows[0].seq = 5
        let layout = ScreenLayout(width: 80)
        #expect(!layout.frame(of: state, height: 24, now: .now).showsMarker)
        state.marker = 4
        #expect(layout.frame(of: state, height: 24, now: .now).showsMarker && lines(state).contains { $0.hasPrefix("── new ") })
        state.rows += (6...60 as ClosedRange<Seq>).map { seq in
            var row = state.rows[0]
            (row.seq, row.id) = (seq, MessageItem.ID(sender: "bartholomew", clientId: ClientID("\(seq)")))
            return row
        }
        #expect(!layout.frame(of: state, height: 24, now: .now).showsMarker)
    }

    @Test("messages kept in memory aren't shown as waiting")
    func inMemory() {
        var state = state()
        state.rows[0].state = .pending
        #expect(lines(state).contains("○ offline; your messages wait · 1 unsent message"))
        state.isInMemory = true
        #expect(lines(state).contains("○ offline · 1 unsent message, lost when you quit"))
        #expect(state.moved(to: "other").isInMemory)
    }
}
