extension String {
    /// The text as one word of a command to copy into a POSIX shell: unchanged if it has no special meaning in any shell, otherwise quoted.
    package var shellWord: String {
        !isEmpty && utf8.allSatisfy(Self.plainInShells.contains) ? self : "'\(replacing("'", with: "'\\''"))'"
    }

    /// The characters without a special meaning in any shell.
    private static let plainInShells = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+,".utf8)
}
