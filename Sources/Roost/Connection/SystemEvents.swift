import Foundation
import NIOConcurrencyHelpers

#if canImport(Network)
import Dispatch
import Network
#endif

/// Tells a client what happens to its app: it came to the foreground or went to the background, or the device has another network.
///
/// Where the system says nothing of the kind, as on Linux, this costs nothing and does nothing.
actor SystemEvents {
    /// What has happened.
    enum Event: Hashable, Sendable {
        case foreground
        case background
        case otherNetwork
    }

    /// The notifications that say it, by their names: so no framework of a user interface is needed, which extensions don't have.
    static let notifications: [(name: Notification.Name, event: Event)] = [
        (Notification.Name("UIApplicationWillEnterForegroundNotification"), .foreground),
        (Notification.Name("NSExtensionHostWillEnterForegroundNotification"), .foreground),
        (Notification.Name("NSApplicationDidBecomeActiveNotification"), .foreground),
        (Notification.Name("WKApplicationWillEnterForegroundNotification"), .foreground),
        (Notification.Name("UIApplicationDidEnterBackgroundNotification"), .background),
        (Notification.Name("NSExtensionHostDidEnterBackgroundNotification"), .background),
        (Notification.Name("WKApplicationDidEnterBackgroundNotification"), .background),
    ]

    /// Keeps the system from suspending the process, until what it returns is called.
    typealias Hold = @Sendable () -> @Sendable () -> Void

    /// An event, and what to call when what follows from it is done.
    private struct Notice: Sendable {
        var event: Event
        var release: @Sendable () -> Void = {}
    }

    private let center: NotificationCenter
    private var observers: [any NSObjectProtocol] = []
    #if canImport(Network)
    private var monitor: NWPathMonitor?
    #endif

    /// Calls back with each event, one after another, until the token is released. The process isn't suspended in the background before the callback for that
    /// has returned, as far as the system allows it.
    static func follow(
        _ center: NotificationCenter = .default, holding hold: @escaping Hold = SystemEvents.hold,
        _ callback: @escaping @Sendable (Event) async -> Void
    ) -> ObservationToken {
        let (notices, continuation) = AsyncStream.makeStream(of: Notice.self)
        let task = Task {
            let source = SystemEvents(center)
            await source.begin(continuation, hold)
            for await notice in notices {
                await callback(notice.event)
                notice.release()
            }
            await source.end()
        }
        return ObservationToken(task: task)
    }

    /// On systems that suspend an app soon after it went to the background, asks for the time to let go of files: one that is suspended with a lock on
    /// files of an App Group is terminated. Elsewhere it does nothing.
    static func hold() -> @Sendable () -> Void {
        #if canImport(Darwin) && !os(macOS)
        let isDone = DispatchSemaphore(value: 0)
        // The process runs as long as this waits, on a thread of the system's. If the time is up before, the system calls once more, to end that.
        ProcessInfo.processInfo.performExpiringActivity(withReason: "Letting go of files that are shared") { isExpired in
            if isExpired { isDone.signal() } else { isDone.wait() }
        }
        return { isDone.signal() }
        #else
        return {}
        #endif
    }

    private init(_ center: NotificationCenter) { self.center = center }

    private func begin(_ notices: AsyncStream<Notice>.Continuation, _ hold: @escaping Hold) {
        for (name, event) in Self.notifications {
            let observer = center.addObserver(forName: name, object: nil, queue: nil) { _ in
                // Here and not where it is handled: a moment later the process may not run any more.
                notices.yield(event == .background ? Notice(event: event, release: hold()) : Notice(event: event))
            }
            observers.append(observer)
        }
        #if canImport(Network)
        let monitor = NWPathMonitor()
        let changes = NIOLockedValueBox(PathChanges())
        monitor.pathUpdateHandler = { path in
            let interfaces = path.status == .satisfied ? path.availableInterfaces.map(\.name) : nil
            if changes.withLockedValue({ $0.isNews(interfaces) }) { notices.yield(Notice(event: .otherNetwork)) }
        }
        monitor.start(queue: DispatchQueue(label: "roost.network"))
        self.monitor = monitor
        #endif
    }

    private func end() {
        for observer in observers { center.removeObserver(observer) }
        observers = []
        #if canImport(Network)
        monitor?.cancel()
        monitor = nil
        #endif
    }
}

/// Knows whether a network that the system reports is one to connect by anew.
struct PathChanges {
    private var last: [String]??

    /// - Parameter interfaces: The names of what the device is connected by; nil while it isn't.
    /// - Returns: Whether it is connected, and otherwise than before. The first report is no news.
    mutating func isNews(_ interfaces: [String]?) -> Bool {
        defer { last = .some(interfaces) }
        guard let last, let interfaces else { return false }
        return last != interfaces
    }
}
