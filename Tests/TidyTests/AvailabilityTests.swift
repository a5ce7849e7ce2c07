import Testing

/// Checks that a build for the oldest systems would make, which Linux can't: there nothing is too new.
@Suite("Availability")
struct AvailabilityTests {
    @Test("every declaration and call of `next(isolation:)` in the SDK is in a function that says which systems have it")
    func isolatedIteration() {
        let wrong = SourceFile.sources.filter { $0.target == "Roost" }.flatMap { file in
            Self.unmarked(in: file.codeLines).map { "\(file.path):\($0 + 1)" }
        }
        #expect(wrong == [])
    }

    @Test("the reading of availability checks the attributes above a line's function")
    func readsAttributes() {
        let code = CodeReader.code(
            of: """
                mutating func next() async -> Int? { await numbers.next(isolation: nil) }
                /// Has its own `next(isolation:)`.
                @available(macOS 15, iOS 18, *)
                @inlinable
                mutating func next(isolation actor: isolated (any Actor)?) async -> Int? {
                    await numbers.next(isolation: actor)
                }
                mutating func next(isolation actor: isolated (any Actor)?) async -> Int? { nil }
                """)
        #expect(Self.unmarked(in: code.split(separator: "\n", omittingEmptySubsequences: false)) == [0, 7])
    }

    /// The numbers of the lines that have `next(isolation:)` in a function without an `@available`.
    private static func unmarked(in code: [Substring]) -> [Int] {
        code.indices.filter { number in
            guard code[number].contains("next(isolation") else { return false }
            guard let function = code[...number].lastIndex(where: { $0.contains("func ") }) else { return true }
            let attributes = code[..<function].reversed().prefix { $0.drop(while: { $0 == " " }).hasPrefix("@") }
            return !attributes.contains { $0.contains("@available(") }
        }
    }
}
