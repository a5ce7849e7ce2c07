#if Cluster
import Logging
import RoostAPI
import RoostTestSupport
import Synchronization

@testable import RoostServer

/// One node's end of the bus, with the messages it received.
final class Peer: Sendable {
    let bus: NATSBus
    let log: LogLines
    private let messages = Mailbox<Received>()
    private let changes = Mailbox<ConnectionChange>()

    init(_ url: String) throws {
        let log = LogLines()
        self.log = log
        bus = try NATSBus(url: url, logger: Logger(label: "bus") { _ in log.handler })
        try bus.start { [messages, changes] event in
            switch event {
            case .received(let topic, let payload): messages.put(Received(topic: topic, payload: payload))
            case .disconnected: changes.put(.disconnected)
            case .reconnected: changes.put(.reconnected)
            }
        }
    }

    /// Waits until the server has all subscriptions: again if it doesn't say so within the two seconds that a node waits.
    func settle() async throws { try await eventually("the subscriptions") { (try? bus.settle()) != nil } }

    func message() async throws -> Received {
        guard let message = await messages.next() else { throw Missed("a message on the bus") }
        return message
    }

    func messages(_ count: Int) async throws -> [Received] {
        var messages: [Received] = []
        for _ in 0..<count { messages.append(try await message()) }
        return messages
    }

    func change() async throws -> ConnectionChange {
        guard let change = await changes.next() else { throw Missed("a change of the connection") }
        return change
    }
}

struct Received: Equatable, Sendable {
    var topic: BusTopic
    var payload: [UInt8]
}

enum ConnectionChange: Sendable {
    case disconnected, reconnected
}

func channel(_ id: String) -> BusTopic { .stream(.channel(ChannelID(id))) }

func stop(_ server: NATSServer, _ peers: Peer...) async {
    for peer in peers { peer.bus.stop() }
    await server.stop()
}

/// A flag that is set once and stays set.
final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }
    func set() { value.store(true, ordering: .sequentiallyConsistent) }
}

/// Collected log lines.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }
    var handler: any LogHandler { Handler(lines: self) }

    func line(containing text: String) async throws {
        do {
            try await eventually("") { all.contains { $0.contains(text) } }
        } catch {
            throw Missed("a line of the log with “\(text)” in \(all)")
        }
    }

    private struct Handler: LogHandler {
        let lines: LogLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            lines.lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") }
        }
    }
}
#endif
