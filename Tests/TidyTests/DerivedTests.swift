import Testing

/// `scripts/derive --check` verifies that derived code follows from the fields; this covers the rest.
@Suite("Derived code")
struct DerivedTests {
    @Test("AM-04 a test compares every model that writes itself with its Encodable half")
    func modelsAreCompared() throws {
        let test = try #require(SourceFile.tests.first { $0.path == "Tests/RoostAPITests/Wire/OperationTests.swift" })
        var models: [String] = []
        for file in SourceFile.sources where file.target == "RoostAPI" {
            var type = ""
            for line in file.lines {
                if let match = line.firstMatch(of: /^extension ([\w.]+)/) { type = String(match.1) }
                if line.contains(/\/\/ derived: write(Members)?\(to:\)/) { models.append(type) }
            }
        }
        #expect(models.count > 10)
        #expect(models.filter { !test.code.contains("roundTrip(\($0).self)") && !test.code.contains("roundTrip(\($0)<") } == [])
    }
}
