import Foundation
import Roost
import RoostAPI
import Testing

@testable import RoostCommand

@Suite struct ScreenLayoutTests {
    /// The lines of a screen, without their styles.
    private func lines(_ state: ScreenState, width: Int = 80, height: Int = 24) -> [String] {
        ScreenLayout(width: width).frame(of: state, height: height, now: .now).lines.map {
            $0.replacing(#/\u{1B}\[[0-9;]*m/#, with: "")
        }
    }

    @Test("a panel that is too long is shown in part, says which, and can be scrolled to its end and no further")
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

    @Test("a panel fits on the lowest of screens", arguments: [4, 5, 6, 7])
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

    @Test("the reason of a lost connection is read in 80 columns")
    func reason() {
        var state = ScreenState(channel: "team")
        let until = Date.now.addingTimeInterval(10)
        let reason = "nothing answers at 127.0.0.1, port 8080: Connection refused"
        state.status = .waiting(until: Timestamp(until), because: WaitingReason(.network, reason))
        #expect(lines(state)[22].hasSuffix(reason) && lines(state, width: 200)[22].contains("your messages wait (\(reason))"))
    }
}
