import Foundation
import Roost
import RoostAPI

/// The line above the input: the state of the connection, and the result of the last command.
enum StatusLine {
    static func text(_ state: ScreenState, now: Date, width: Int) -> String {
        let text = line(state, state.notice, now: now, width: width).truncated(to: width)
        return (state.status == .online ? Style.dim : .alert).applied(to: text)
    }

    /// Whether a notice fits next to everything else on the line.
    static func hasRoom(for notice: String, _ state: ScreenState, now: Date, width: Int) -> Bool {
        line(state, notice, now: now, width: width).columnWidth <= width
    }

    private static func line(_ state: ScreenState, _ notice: String?, now: Date, width: Int) -> String {
        var parts = [connection(state, now: now, width: width)]
        // If a reason is shown, which may be cut off, they are placed before it.
        if !state.status.isWaiting, let unsent = unsent(state) { parts.append(unsent) }
        if !state.isAtBottom { parts.append("scrolled up; press End to return") }
        if let typing = typing(state) { parts.append(typing) }
        if let notice { parts.append(notice.safe()) }
        return parts.joined(separator: " · ")
    }

    /// `1 unsent message`; nil if there is none.
    private static func unsent(_ state: ScreenState) -> String? {
        guard state.pendingCount > 0 else { return nil }
        let isLost = state.isInMemory ? ", lost when you quit" : ""
        return "\(state.pendingCount) unsent message\(state.pendingCount == 1 ? "" : "s")\(isLost)"
    }

    /// `Bob is typing …`; nil while nobody is.
    private static func typing(_ state: ScreenState) -> String? {
        switch (state.typing.count, state.moreType) {
        case (0, false): nil
        case (1, false): "\(state.typing[0]) is typing …"
        case (2, false): "\(state.typing[0]) and \(state.typing[1]) are typing …"
        default: "several people are typing …"
        }
    }

    private static func connection(_ state: ScreenState, now: Date, width: Int) -> String {
        switch state.status {
        case .online: "● online"
        case .connecting: "○ connecting …"
        case .offline: state.isInMemory ? "○ offline" : "○ offline; your messages wait"
        case .waiting(let until, let reason):
            waiting(state, seconds: max(0, Int(until.date.timeIntervalSince(now).rounded(.up))), reason.words, width: width)
        case .refused(let error): "✗ the server refuses the token: \(error.summaryLine)"
        case .failed(let error): "✗ can't connect: \(error.summaryLine)"
        }
    }
}

extension StatusLine {
    /// The longest text that fits: the reason matters more than the rest.
    private static func waiting(_ state: ScreenState, seconds: Int, _ reason: String, width: Int) -> String {
        let unsent = unsent(state).map { " · \($0)" } ?? ""
        // The loss of messages is announced however narrow the screen is.
        let shortUnsent = unsent.isEmpty || state.isInMemory ? unsent : " · \(state.pendingCount) unsent"
        let texts =
            (state.isInMemory ? [] : ["○ reconnecting in \(seconds) s; your messages wait\(unsent) (\(reason))"]) + [
                "○ reconnecting in \(seconds) s\(unsent) (\(reason))", "○ retry in \(seconds) s\(shortUnsent): \(reason)",
            ]
        return texts.first { $0.columnWidth <= width } ?? texts[texts.count - 1]
    }

    /// What to do if no server was found; shown once.
    static func noServer(_ startCommand: String) -> String {
        "Start a server with \(startCommand), or name its address with --url."
    }
}

extension ConnectionStatus {
    /// Whether it waits for the next attempt.
    fileprivate var isWaiting: Bool { if case .waiting = self { true } else { false } }

    /// Whether it waits because nothing answers at the address.
    var isWithoutServer: Bool { if case .waiting(_, let reason) = self { reason.cause == .network } else { false } }
}

/// The style of a piece of a line.
struct Style: Hashable {
    private let code: String

    static let dim = Style(code: "2")
    static let bold = Style(code: "1")
    static let inverse = Style(code: "7")
    /// The name of the user, or of the channel, in a message that mentions them.
    static let ownMention = Style(code: "1;7")
    static let alert = Style(code: usesColours ? "31" : "1")

    /// See no-color.org: setting the variable disables colours, but not bold or dim text.
    private static let usesColours = ProcessInfo.processInfo.variable("NO_COLOR") == nil

    /// A person's colour: the same in every run and on every machine, and readable on dark and light backgrounds.
    static func name(_ id: String) -> Style {
        guard usesColours else { return .bold }
        var hash: UInt32 = 0x811c_9dc5
        for byte in id.utf8 { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        let colours = [166, 33, 70, 133, 37, 136, 99, 161, 30, 125]
        return Style(code: "1;38;5;\(colours[Int(hash % UInt32(colours.count))])")
    }

    func applied(to text: String) -> String { "\u{1B}[\(code)m\(text)\u{1B}[0m" }
}
