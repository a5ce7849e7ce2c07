import Foundation
import Testing

/// The samples in the articles, README.md and the pages of docs for apps are compiled: each is in the folder Samples too, word for word, or
/// can't be compiled here.
@Suite("Samples")
struct SampleTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let catalog = root.appending(path: "Sources/Roost/Roost.docc")

    private static func lines(of file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
    }

    /// The blocks between two lines, without their common indentation.
    private static func blocks(of file: URL, from begin: String, to end: String) throws -> [[String]] {
        var blocks: [[String]] = []
        var block: [String]?
        for line in try lines(of: file) {
            switch (line.trimmingCharacters(in: .whitespaces), block) {
            case (begin, nil): block = []
            case (end, let done?):
                let indent = done.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
                blocks.append(done.map { String($0.dropFirst(indent)) })
                block = nil
            default: block?.append(line)
            }
        }
        return blocks
    }

    private static func files(in folder: URL, _ suffix: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).filter {
            $0.pathExtension == suffix
        }
    }

    @Test(
        "every sample of the articles, README.md and the pages of docs for apps is compiled here, and every compiled one is shown")
    func compiled() throws {
        let samples = try Self.files(in: URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Samples"), "swift")
        let compiled = try samples.flatMap { try Self.blocks(of: $0, from: "// sample.begin", to: "// sample.end") }
        let articles =
            try Self.files(in: Self.catalog, "md")
            + ["README.md", "docs/channels.md", "docs/messages.md", "docs/live.md"].map { Self.root.appending(path: $0) }
        let shown = try articles.flatMap { try Self.blocks(of: $0, from: "```swift", to: "```") }
            // There is no SwiftUI here, and scripts/test-consumer has the package manager read the manifest.
            .filter { block in
                !block.contains { ["import SwiftUI", "import PackageDescription"].contains($0) || $0.hasPrefix(".package(") }
            }
            .map { $0.first?.hasPrefix("import ") == true ? Array($0.drop { $0.isEmpty || $0.hasPrefix("import ") }) : $0 }
        #expect(Set(shown).subtracting(compiled) == [])
        #expect(Set(compiled).subtracting(shown) == [])
        #expect(compiled.count > 15)
    }

    @Test("the first message takes less than 12 lines, and README.md shows it too")
    func firstMessage() throws {
        let article = try Self.blocks(of: Self.catalog.appending(path: "FirstMessage.md"), from: "```swift", to: "```")
        let readme = try Self.blocks(of: Self.root.appending(path: "README.md"), from: "```swift", to: "```")
        let first = try #require(article.first)
        #expect(first.count < 12)
        #expect(readme.first == ["import Roost", ""] + first)
    }
}
