import Foundation
import Roost
import RoostAPI

/// The line above the input: the state of the connection, and the result of the last command.
enum StatusLine {
    /// Columns that the state of a good connection takes.
    static let connectionWidth = 11

    static func text(_ state: ScreenState, now: Date, width: Int) -> String {
        var parts = [connection(state, now: now, width: width)]
        if state.pendingCount > 0 { parts.append("\(state.pendingCount) unsent message\(state.pendingCount == 1 ? "" : "s")") }
        if !state.isAtBottom { parts.append("scrolled up; press End to return") }
        if let typing = typing(state) { parts.append(typing) }
        if let notice = state.notice { parts.append(notice.safe()) }
        let text = parts.joined(separator: " · ").truncated(to: width)
        return (state.status == .online ? Style.dim : .alert).applied(to: text)
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
        case .offline: "○ offline; your messages wait"
        case .waiting(let until, let reason):
            waiting(seconds: max(0, Int(until.date.timeIntervalSince(now).rounded(.up))), reason.message.safe(), width: width)
        case .refused(let error): "✗ the server refuses the token: \(error.summaryLine)"
        case .failed(let error): "✗ can't connect: \(error.summaryLine)"
        }
    }
}

extension StatusLine {
    /// The longest text that fits: the reason matters more than what is said beside it.
    private static func waiting(seconds: Int, _ reason: String, width: Int) -> String {
        let texts = [
            "○ reconnecting in \(seconds) s; your messages wait (\(reason))", "○ reconnecting in \(seconds) s (\(reason))",
            "○ retry in \(seconds) s: \(reason)",
        ]
        return texts.first { $0.columnWidth <= width } ?? texts[texts.count - 1]
    }

    /// What to do where no server was found, which is said once.
    static let noServer = "Start a server with roost serve, or name its address with --url."
}

extension ConnectionStatus {
    /// Whether it waits because nothing answers at the address.
    var isWithoutServer: Bool { if case .waiting(_, let reason) = self { reason.cause == .network } else { false } }
}

/// How a piece of a line looks.
struct Style: Hashable {
    private let code: String

    static let dim = Style(code: "2")
    static let bold = Style(code: "1")
    static let inverse = Style(code: "7")
    static let alert = Style(code: "31")

    /// A person's colour: the same in every run and on every machine, and readable on dark and on light.
    static func name(_ id: String) -> Style {
        var hash: UInt32 = 0x811c_9dc5
        for byte in id.utf8 { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        let colours = [166, 33, 70, 133, 37, 136, 99, 161, 30, 125]
        return Style(code: "1;38;5;\(colours[Int(hash % UInt32(colours.count))])")
    }

    func applied(to text: String) -> String { "\u{1B}[\(code)m\(text)\u{1B}[0m" }
}
