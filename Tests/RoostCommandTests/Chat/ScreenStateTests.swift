import Foundation
import RoostAPI
import Testing

@testable import Roost
@testable import RoostCommand

/// The state of a chat's screen, and how long it lasts.
@Suite struct ScreenStateTests {
    private static let waiting = ConnectionStatus.waiting(
        until: Timestamp(Date()), because: WaitingReason(.network, "nothing answers at 127.0.0.1, port 8080: Connection refused"))

    private static func row(_ seq: Seq) -> ScreenState.Row {
        let key = MessageKey(channel: "team", clientId: ClientID("\(seq)"))
        return ScreenState.Row(
            id: MessageItem.ID(sender: "ann", clientId: key.clientId), seq: seq, name: "ann", text: "text \(seq)", date: Date(),
            state: .sent, isMine: false, isEdited: false, isDeleted: false)
    }

    @Test(
        "a notice that doesn't fit on the status line beside the connection's state is shown over the messages",
        arguments: [40, 80, 120])
    func room(width: Int) {
        var state = ScreenState(channel: "team")
        state.status = .online
        state.showResult(["there is nothing older"], width: width)
        #expect(state.notice == "there is nothing older" && state.panel.lines == [])
        state.notice = nil
        state.status = Self.waiting
        state.showResult(["there is nothing older"], width: width)
        #expect(state.notice == nil && state.panel.lines == ["there is nothing older"])
    }

    @Test("a notice caused by a missing connection disappears once there is one again", arguments: [true, false])
    func outage(isOnline: Bool) {
        var state = ScreenState(channel: "team")
        state.status = isOnline ? .online : Self.waiting
        state.showOutage("/who: There is no connection.", width: 80)
        #expect((state.notice == nil) == !isOnline)
        state.outageEnded()
        #expect(state.notice == nil && state.panel.lines == [])
        // Anything else stays.
        state.showOutage("/who: There is no connection.", width: 80)
        state.notice = "there is nothing older"
        state.panel = Panel(["Your channels:"])
        state.outageEnded()
        #expect(state.notice == "there is nothing older" && state.panel.lines == ["Your channels:"])
    }

    @Test("an outdated notice is removed wherever it was shown, and nothing else is", arguments: [40, 120])
    func takenBack(width: Int) {
        let absence = "you are no longer a member of #team"
        var state = ScreenState(channel: "team")
        state.status = .online
        state.showResult([absence], width: width)
        #expect((state.notice == nil) == (width == 40))
        state.takeBack(absence)
        #expect(state.notice == nil && state.panel.lines == [])
        state.notice = "the channel was just created"
        state.panel = Panel(["Your channels:"])
        state.takeBack(absence)
        #expect(state.notice == "the channel was just created" && state.panel.lines == ["Your channels:"])
    }

    @Test("a notice disappears after a while, and a newer one has its own time")
    func notice() {
        var state = ScreenState(channel: "team")
        state.notice = "one"
        for _ in 0..<15 { state.tick() }
        state.notice = "two"
        for _ in 0..<19 { state.tick() }
        #expect(state.notice == "two")
        state.tick()
        #expect(state.notice == nil)
    }

    @Test("a user who has scrolled up keeps their place when rows arrive, unless they have requested the newest")
    func place() {
        for (keepsPlace, hasNewer, expected) in [(true, true, 10), (false, true, 0), (true, false, 0)] {
            var state = ScreenState(channel: "team")
            (state.rows, state.hasNewer) = ((1...50).map(Self.row), hasNewer)
            state.show((1...60).map(Self.row), keepsPlace: keepsPlace, width: 80)
            #expect(state.scroll == expected)
        }
    }
}
