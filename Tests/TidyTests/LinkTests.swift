import Foundation
import Testing

/// Links between the documents of this package.
@Suite("Links")
struct LinkTests {
    private struct Document {
        /// From the root of the package: `docs/protocol.md`.
        let path: String
        /// The lines outside of code samples.
        let lines: [Substring]

        var folder: URL { SourceFile.root.appending(path: path).deletingLastPathComponent() }
        /// The names by which links refer to its headings, as GitHub and Gitea derive them.
        var anchors: Set<String> {
            var anchors: Set<String> = []
            for line in lines {
                guard let heading = line.wholeMatch(of: /#+ (.*)/)?.1 else { continue }
                let name = heading.lowercased().filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }
                anchors.insert(name.replacing(" ", with: "-"))
            }
            return anchors
        }
    }

    @Test("every link from a document to a file or a heading of the package leads there")
    func linksLeadThere() throws {
        let documents = try Self.documents()
        #expect(documents.count > 100)
        let anchors = Dictionary(uniqueKeysWithValues: documents.map { ($0.path, $0.anchors) })
        var broken: [String] = []
        for document in documents {
            for line in document.lines {
                for link in line.matches(of: /\]\(([^)\s]+)\)/).map(\.1) where !link.contains(/^(https?|mailto|doc):|…/) {
                    let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                    let target = parts[0].isEmpty ? document.path : Self.path(of: parts[0], from: document.folder)
                    let isThere = FileManager.default.fileExists(atPath: SourceFile.root.appending(path: target).path)
                    let hasAnchor = parts.count == 1 || anchors[target]?.contains(String(parts[1])) == true
                    if !isThere || !hasAnchor { broken.append("\(document.path): \(link)") }
                }
            }
        }
        #expect(broken.isEmpty, "\(broken.joined(separator: "\n"))")
    }

    @Test("every decision that source code refers to by its file exists")
    func decisionsExist() {
        let files = SourceFile.sources + SourceFile.tests + SourceFile.examples
        let paths = files.flatMap { file in
            file.text.matches(of: /docs\/decisions\/\d{4}[-a-z0-9]*\.md/).map { (file.path, String($0.0)) }
        }
        #expect(!paths.isEmpty)
        for (file, decision) in paths {
            #expect(FileManager.default.fileExists(atPath: SourceFile.root.appending(path: decision).path), "\(file): \(decision)")
        }
    }

    /// The path of a link's file from the root of the package.
    private static func path(of link: Substring, from folder: URL) -> String {
        let path = folder.appending(path: String(link)).standardizedFileURL.path
        return String(path.dropFirst(SourceFile.root.standardizedFileURL.path.count)).trimmingPrefix("/").description
    }

    private static func documents() throws -> [Document] {
        let root = SourceFile.root
        let folders = ["docs", "Sources", "Examples"].flatMap { folder in
            (FileManager.default.enumerator(atPath: root.appending(path: folder).path)?.compactMap { $0 as? String } ?? [])
                .map { folder + "/" + $0 }
        }
        let paths = try FileManager.default.contentsOfDirectory(atPath: root.path) + folders
        return try paths.filter { $0.hasSuffix(".md") && !$0.contains(".build/") }.sorted().map { path in
            let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            var isSample = false
            let lines = text.split(separator: "\n").filter { line in
                if line.trimmingPrefix(/\s*/).hasPrefix("```") { isSample.toggle() }
                return !isSample
            }
            return Document(path: path, lines: lines)
        }
    }
}
