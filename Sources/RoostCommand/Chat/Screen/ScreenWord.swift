/// What a line of input means: a message, or a command.
enum ScreenWord: Hashable {
    case message(String)
    case quit, help, older, members, delete, retry, discard
    /// Nil when the text to edit is asked for.
    case edit(String?)
    case unknown(String)

    init(_ line: String) {
        guard line.hasPrefix("/") else {
            self = .message(line)
            return
        }
        // Two slashes begin a message that begins with one.
        guard !line.hasPrefix("//") else {
            self = .message(String(line.dropFirst()))
            return
        }
        let parts = line.dropFirst().split(separator: " ", maxSplits: 1)
        let rest = parts.count > 1 ? String(parts[1]) : nil
        switch parts.first {
        case "quit", "q", "exit": self = .quit
        case "help", "?": self = .help
        case "older": self = .older
        case "members", "who": self = .members
        case "delete": self = .delete
        case "retry": self = .retry
        case "discard": self = .discard
        case "edit": self = .edit(rest)
        default: self = .unknown(line)
        }
    }

    static let helpLines = [
        "/edit [TEXT]   change your newest message; without a text, fetch it to be changed",
        "/delete        delete your newest message",
        "/retry         send a refused message again; /discard gives it up",
        "/members       who is in this channel",
        "/older         load older messages; PageUp at the top does it too",
        "/quit          leave this screen; Ctrl-C does it too",
        "//text         a message that begins with a slash",
        "PageUp, PageDown, ↑, ↓ scroll; Ctrl-U, Ctrl-W, Ctrl-K delete; Ctrl-L draws again",
    ]
}
