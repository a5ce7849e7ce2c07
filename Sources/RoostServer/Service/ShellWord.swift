extension String {
    /// The text as one word of a command that people copy into a POSIX shell: as it is if no shell gives anything in it a meaning, otherwise in
    /// quotes.
    package var shellWord: String {
        !isEmpty && utf8.allSatisfy(Self.plainInShells.contains) ? self : "'\(replacing("'", with: "'\\''"))'"
    }

    /// What means itself in every shell.
    private static let plainInShells = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+,".utf8)
}
