import Foundation

/// A page of this project about running and calling a server.
struct DocumentPage: Sendable {
    /// From the root of the package: `docs/operations/backup.md`.
    let path: String
    let text: String

    /// Without the ledger, which lists tests, and decisions, which describe earlier states.
    static let all: [DocumentPage] = {
        let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
        let folders = ["docs", "docs/operations", "Sources/Roost/Roost.docc"]
        let found = folders.flatMap { folder in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)) ?? []
            return names.sorted().map { "\(folder)/\($0)" }
        }
        let paths = ["README.md", "SECURITY.md", "Examples/README.md"] + found.filter { $0.hasSuffix(".md") }
        return paths.filter { $0 != "docs/ledger.md" }.compactMap { path in
            guard let text = try? String(contentsOf: root.appending(path: path), encoding: .utf8) else { return nil }
            return DocumentPage(path: path, text: text)
        }
    }()

    /// The page's shell text: blocks of `sh`, lines after a prompt, and roost commands that are indented or have an option in the text.
    var shell: String {
        var lines: [String] = []
        // The language of the line's block.
        var language: String?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let content = String(line.drop { $0 == " " })
            if content.hasPrefix("```") {
                language = language == nil ? String(content.dropFirst(3)) : nil
            } else if language == "sh" {
                lines.append(content)
            } else if content.hasPrefix("$ ") {
                lines.append(String(content.dropFirst(2)))
            } else if language == nil, line.hasPrefix("    roost ") {
                lines.append(content)
            } else if language == nil {
                lines += line.matches(of: /`(roost [^`]* --[^`]*)`/).map { String($0.1) }
            }
        }
        return lines.joined(separator: "\n")
    }
}
