import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Synchronization

/// Runs cases from a seed. The same seed, kind and index make the same input.
public struct FuzzRun: Sendable {
    public let seed: UInt64
    /// Called before each batch, so after a crash the last line shows where it happened.
    let willRun: @Sendable (FuzzKind, Range<Int>) -> Void

    public init(seed: UInt64, willRun: @escaping @Sendable (FuzzKind, Range<Int>) -> Void = { _, _ in }) {
        self.seed = seed
        self.willRun = willRun
    }

    /// Replays earlier findings, and other inputs worth starting with.
    ///
    /// - Returns: The number of inputs.
    @discardableResult
    public static func replayCorpus() throws -> Int {
        let inputs = try corpus()
        var readingThemselves: Set<String> = []
        for (kind, bytes) in inputs {
            var random = FuzzRandom(seed: 1, kind: kind, index: 0)
            switch kind {
            case .json: try JSONFuzz.check(bytes)
            case .message, .operation: if let operation = try MessageFuzz.check(bytes) { readingThemselves.insert(operation) }
            case .packet: PacketFuzz.check(bytes)
            case .presence: try PresenceFuzz.check(bytes)
            case .news: try NewsFuzz.check(bytes)
            case .connection, .wire: for _ in 0..<8 { try ConnectionFuzz.check(bytes, &random) }
            }
        }
        // Otherwise nothing would have been compared with Foundation.
        for type in UntrustedBytes.plainOperations where !readingThemselves.contains(type.name) {
            throw FuzzFinding("no input of the corpus is a \(type.name) that reads its own fields", [])
        }
        return inputs.count
    }

    /// The corpus: each line of `KIND.hex` that isn't a comment is one input.
    private static func corpus() throws -> [(FuzzKind, [UInt8])] {
        let directory = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")
        return try FuzzKind.allCases.flatMap { kind -> [(FuzzKind, [UInt8])] in
            let file = directory.appending(path: "\(kind.rawValue).hex")
            guard FileManager.default.fileExists(atPath: file.path) else { return [] }
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
            return lines.map { (kind, bytes(ofHex: $0)) }
        }
    }

    private static func bytes(ofHex text: Substring) -> [UInt8] {
        let digits = text.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    // MARK: Cases

    /// Runs cases of a kind that needs no server.
    public func run(_ kind: FuzzKind, _ cases: Range<Int>) throws {
        willRun(kind, cases)
        let world = kind == .operation ? try OperationFuzz() : nil
        for index in cases {
            var random = FuzzRandom(seed: seed, kind: kind, index: index)
            switch kind {
            case .connection:
                let input = ConnectionFuzz.input(&random)
                try ConnectionFuzz.check(input, &random)
            case .json: try JSONFuzz.check(JSONFuzz.input(&random))
            case .message:
                // Every second one is an operation that reads its own fields.
                try MessageFuzz.check(random.chance(2) ? PlainFuzz.input(&random) : MessageFuzz.input(&random))
            case .packet: PacketFuzz.check(PacketFuzz.input(&random))
            case .presence: try PresenceFuzz.check(PresenceFuzz.input(&random))
            case .news: try NewsFuzz.check(NewsFuzz.input(&random))
            case .operation: try world?.check(&random)
            case .wire: preconditionFailure("This kind needs a server: runWire.")
            }
        }
    }

    /// Runs cases over loopback, some at once.
    public func runWire(_ cases: Range<Int>) async throws {
        let last = Mutex(cases.lowerBound)
        try await runWire {
            last.withLock { start in
                defer { start = min(start + Self.wireBatchSize, cases.upperBound) }
                return start < cases.upperBound ? start..<min(start + Self.wireBatchSize, cases.upperBound) : nil
            }
        }
    }

    public static let wireBatchSize = 1024
    private static let wireWorkers = 64

    /// Runs batches against one server while there is a next one.
    ///
    /// Frames of a server are read on tasks, and so are these cases: run other kinds meanwhile on threads of their own.
    public func runWire(
        didRun: @Sendable (Range<Int>) -> Void = { _ in }, next: @Sendable () -> Range<Int>?
    ) async throws {
        let fuzz = try await WireFuzz()
        let seed = seed
        do {
            while let batch = next() {
                willRun(.wire, batch)
                try await withThrowingTaskGroup { group in
                    for worker in 0..<Self.wireWorkers {
                        group.addTask {
                            for index in stride(from: batch.lowerBound + worker, to: batch.upperBound, by: Self.wireWorkers) {
                                var random = FuzzRandom(seed: seed, kind: .wire, index: index)
                                try await fuzz.check(&random)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                try await fuzz.checkAlive()
                didRun(batch)
            }
        } catch {
            try? await fuzz.server.stop()
            throw error
        }
        try await fuzz.server.stop()
    }
}
