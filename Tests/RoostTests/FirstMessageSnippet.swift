import Foundation
import Roost
import Testing

/// The part that the article calls the app's own.
private struct Backend: Sendable {
    func chatToken() async throws -> String { "token" }
}

/// The article's code, compiled.
@MainActor private func firstMessage(server: URL, backend: Backend) async throws {
    // snippet.begin
    let chat = Chat(url: server, user: "ann") { try await backend.chatToken() }
    try await chat.connect()

    let general = chat.channel("general")
    try await general.join()
    try await general.send("Hello, everyone!")

    for await update in general.messages().updates {
        print(update.items.map { "\($0.sender): \($0.text)" })
    }
    // snippet.end
}

@Suite("Article")
struct ArticleTests {
    @Test("The first message takes less than 12 lines, and the article and README.md show the code that is compiled here")
    func snippet() throws {
        let here = URL(filePath: #filePath)
        let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let source = try String(contentsOf: here, encoding: .utf8)
        let article = try String(contentsOf: root.appending(path: "Sources/Roost/Roost.docc/Roost.md"), encoding: .utf8)
        let compiled = try lines(of: source, from: "    // snippet.begin", to: "    // snippet.end").map { line in
            line.hasPrefix("    ") ? String(line.dropFirst(4)) : line
        }
        let shown = try lines(of: article, from: "```swift", to: "```")
        #expect(shown == compiled)
        #expect(shown.count < 12)
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        #expect(try lines(of: readme, from: "import Roost", to: "```") == [""] + compiled)
    }

    private func lines(of text: String, from begin: String, to end: String) throws -> [String] {
        let lines = text.components(separatedBy: "\n")
        let first = try #require(lines.firstIndex(of: begin)) + 1
        let last = try #require(lines[first...].firstIndex(of: end))
        return Array(lines[first..<last])
    }
}
