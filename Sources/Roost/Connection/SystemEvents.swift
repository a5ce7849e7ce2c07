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

    private let center: NotificationCenter
    private var observers: [any NSObjectProtocol] = []
    #if canImport(Network)
    private var monitor: NWPathMonitor?
    #endif

    /// Calls back with each event, one after another, until the token is released.
    static func follow(
        _ center: NotificationCenter = .default, _ callback: @escaping @Sendable (Event) async -> Void
    ) -> ObservationToken {
        let (events, continuation) = AsyncStream.makeStream(of: Event.self)
        let task = Task {
            let source = SystemEvents(center)
            await source.begin(continuation)
            for await event in events { await callback(event) }
            await source.end()
        }
        return ObservationToken(task: task)
    }

    private init(_ center: NotificationCenter) { self.center = center }

    private func begin(_ events: AsyncStream<Event>.Continuation) {
        for (name, event) in Self.notifications {
            observers.append(center.addObserver(forName: name, object: nil, queue: nil) { _ in events.yield(event) })
        }
        #if canImport(Network)
        let monitor = NWPathMonitor()
        let changes = NIOLockedValueBox(PathChanges())
        monitor.pathUpdateHandler = { path in
            let interfaces = path.status == .satisfied ? path.availableInterfaces.map(\.name) : nil
            if changes.withLockedValue({ $0.isNews(interfaces) }) { events.yield(.otherNetwork) }
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
