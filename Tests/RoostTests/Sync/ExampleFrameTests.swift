import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The frames of docs/protocol.md. A test of the server checks that it sends them.
@Suite struct ExampleFrameTests {
    private static func examples() throws -> [String] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
        let section = page.components(separatedBy: "\n## Examples\n").last ?? ""
        return section.split(separator: "\n").filter { $0.hasPrefix("{") }.map(String.init)
    }

    @Test("§4 every example of an event and a signal is read whole: no row is skipped, and no kind is unknown")
    func read() throws {
        let examples = try Self.examples()
        var kinds: Set<String> = []
        for example in examples {
            let frame = try IncomingFrame(Array(example.utf8))
            if let signal = frame.signal { kinds.insert(signal.kind.rawValue) }
            guard let event = frame.event else { continue }
            // In its delivered form, since nearly all frames that a client gets are events.
            #expect(IncomingFrame(plainly: Array(example.utf8), .standard) != nil, "Foundation reads \(example)")
            kinds.insert(event.kind)
            #expect(Event.Kind(rawValue: event.kind) != nil && event.rows.problems.isEmpty, "\(example)")
        }
        #expect(kinds.count == examples.count && examples.count > 30)
    }

    @Test("§4 every example is accepted by a client that is online, in any order", arguments: 0..<4)
    func take(rotation: Int) async throws {
        let examples = try Self.examples()
        var client = try await Harness()
        try await client.connectWithChannel()
        for example in examples[rotation * examples.count / 4..<examples.count] + examples[0..<rotation * examples.count / 4] {
            try await client.receive(text: example)
        }
        // Frames of others, or of unfollowed channels, change nothing. None of them is a fault.
        for case .log(let level, let message) in client.take() { #expect(level < .error, "\(message)") }
    }
}
