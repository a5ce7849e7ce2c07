import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The frames of docs/protocol.md, which a test of the server holds to be what it sends.
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
            // In whichever form it is delivered, as nearly all that a client gets is an event.
            #expect(IncomingFrame(plainly: Array(example.utf8), .standard) != nil, "Foundation reads \(example)")
            kinds.insert(event.kind)
            #expect(Event.Kind(rawValue: event.kind) != nil && event.rows.problems.isEmpty, "\(example)")
        }
        #expect(kinds.count == examples.count && examples.count > 30)
    }

    @Test("§4 every example is taken by a client that is online, in whatever order they come", arguments: 0..<4)
    func take(rotation: Int) async throws {
        let examples = try Self.examples()
        var client = try await Harness()
        try await client.connectWithChannel()
        for example in examples[rotation * examples.count / 4..<examples.count] + examples[0..<rotation * examples.count / 4] {
            try await client.receive(text: example)
        }
        // What belongs to others, or isn't followed, changes nothing. Nothing of it is a fault.
        for case .log(let level, let message) in client.take() { #expect(level < .error, "\(message)") }
    }
}
