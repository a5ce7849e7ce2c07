/// Parses shell just enough to find commands and their words.
struct ShellReader {
    private var rest: Substring
    private var commands: [[String]] = []
    private var words: [String] = []
    /// The current word; nil between two words.
    private var word: String?

    /// Words that may precede a command, besides variables of its environment.
    private static let keywords: Set<String> = ["do", "then", "else", "exec", "sudo", "until", "while", "if", "!"]

    private init(rest: Substring) { self.rest = rest }

    /// Returns the words of each command, without redirections and comments. A variable and the output of a command are `1`; that command comes
    /// before the one that contains it.
    static func commands(in text: String) -> [[String]] {
        var reader = ShellReader(rest: text[...])
        reader.read(untilParenthesis: false)
        return reader.commands
    }

    private mutating func read(untilParenthesis: Bool) {
        while let character = rest.popFirst() {
            switch character {
            case "'":
                let end = rest.firstIndex(of: "'") ?? rest.endIndex
                add(String(rest[..<end]))
                rest = rest[end...].dropFirst()
            case "\"": readQuoted()
            case "\\": if let next = rest.popFirst(), next != "\n" { add(String(next)) }
            case "$": readExpansion()
            case "#" where word == nil: rest = rest.drop { $0 != "\n" }
            case "<", ">": readRedirection()
            case " ": endWord()
            case "\n", ";", "|", "&", "(": endCommand()
            case ")":
                endCommand()
                if untilParenthesis { return }
            default: add(String(character))
            }
        }
        endCommand()
    }

    private mutating func readQuoted() {
        add("")
        while let character = rest.popFirst(), character != "\"" {
            switch character {
            case "$": readExpansion()
            case "\\": if let next = rest.popFirst() { add(String(next)) }
            default: add(String(character))
            }
        }
    }

    /// Reads what follows a `$`.
    private mutating func readExpansion() {
        switch rest.first {
        case "(":
            var inner = ShellReader(rest: rest.dropFirst())
            inner.read(untilParenthesis: true)
            commands += inner.commands
            rest = inner.rest
        case "{": rest = rest.drop { $0 != "}" }.dropFirst()
        case "!", "?", "$", "#", "@", "*": rest = rest.dropFirst()
        default: rest = rest.drop { $0.isLetter || $0.isNumber || $0 == "_" }
        }
        add("1")
    }

    /// Skips the file of a redirection, and the number before it.
    private mutating func readRedirection() {
        if let word, word.allSatisfy(\.isNumber) { self.word = nil } else { endWord() }
        rest = rest.drop { "<>& ".contains($0) }.drop { !" \n;|&)".contains($0) }
    }

    private mutating func add(_ text: String) { word = (word ?? "") + text }

    private mutating func endWord() {
        if let word { words.append(word) }
        word = nil
    }

    private mutating func endCommand() {
        endWord()
        let command = words.drop { Self.keywords.contains($0) || $0.contains(/^[A-Za-z_][A-Za-z0-9_]*=/) }
        if !command.isEmpty { commands.append(Array(command)) }
        words = []
    }
}
