import Foundation
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// The signals that end a server's process, trapped before the server is made.
///
/// That can take long, since a node waits for others that bring the tables up to date. Linux doesn't deliver a signal that isn't trapped to process 1
/// of a container: the node would start in spite of it, and be killed without closing its sockets.
final class EndingSignals: Sendable {
    private let signals: UnixSignalsSequence
    private let logger: Logger
    /// Nil until the server has been made.
    private let group = Mutex<ServiceGroup?>(nil)

    /// Traps the signals. They have an effect once ``follow()`` runs.
    init(_ signals: [UnixSignal], logger: Logger) async {
        self.signals = await UnixSignalsSequence(trapping: signals)
        self.logger = logger
    }

    /// From now on the first signal shuts this group down, even if it doesn't run yet.
    func direct(to group: ServiceGroup) { self.group.withLock { $0 = group } }

    /// The first signal shuts the server down gracefully. A second one ends it at once: everything acknowledged is on disk. So does the first one if
    /// the server hasn't been made yet: nothing has been acknowledged.
    ///
    /// All trapped signals count alike, also the hang-up of the server's own terminal. One right after the first doesn't count as a second one: some
    /// programs signal a process and then its group.
    func follow() async {
        var first: ContinuousClock.Instant?
        for await signal in signals {
            let now = ContinuousClock.now
            if let begin = first {
                guard now - begin >= Self.secondSignalPause else { continue }
                logger.notice("A second signal arrived: the server stops immediately.", metadata: ["signal": "\(signal)"])
                exit(128 + signal.rawValue)
            }
            guard let group = self.group.withLock({ $0 }) else {
                logger.notice("A signal arrived before the server had started: it ends.", metadata: ["signal": "\(signal)"])
                // It ends as it was asked to, which a supervisor shouldn't take for a failure.
                exit(0)
            }
            first = now
            await group.triggerGracefulShutdown()
        }
    }

    /// The time after the first signal from which another one counts.
    private static let secondSignalPause = Duration.seconds(1)
}
