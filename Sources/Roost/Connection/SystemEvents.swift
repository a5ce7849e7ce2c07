import Foundation
import NIOConcurrencyHelpers

#if canImport(Network)
import Dispatch
import Network
#endif

/// Notifies a client of events of its app: it moved to the foreground or the background, or the device's network changed.
///
/// On systems without such events, such as Linux, this costs nothing and does nothing.
actor SystemEvents {
    /// The kind of event.
    enum Event: Hashable, Sendable {
        case foreground
        /// The app is active. It may have been in the foreground all along.
        case active
        case background
        /// The app was already in the background when following began.
        case alreadyInBackground
        case otherNetwork
    }

    /// The notifications by name, which needs no user interface framework: extensions don't have one.
    static let notifications: [(name: Notification.Name, event: Event)] = [
        (Notification.Name("UIApplicationWillEnterForegroundNotification"), .foreground),
        (Notification.Name("UIApplicationDidBecomeActiveNotification"), .active),
        (Notification.Name("NSExtensionHostWillEnterForegroundNotification"), .foreground),
        (Notification.Name("NSApplicationDidBecomeActiveNotification"), .foreground),
        (Notification.Name("WKApplicationWillEnterForegroundNotification"), .foreground),
        (Notification.Name("UIApplicationDidEnterBackgroundNotification"), .background),
        (Notification.Name("NSExtensionHostDidEnterBackgroundNotification"), .background),
        (Notification.Name("WKApplicationDidEnterBackgroundNotification"), .background),
    ]

    /// Keeps the system from suspending the process until the returned closure is called.
    typealias Hold = @Sendable () -> @Sendable () -> Void

    /// Asks whether the app is in the background; nil if unknown.
    typealias BackgroundCheck = @Sendable () async -> Bool?

    /// An event, and what to call once it has been handled.
    private struct Notice: Sendable {
        var event: Event
        var release: @Sendable () -> Void = {}
    }

    private let center: NotificationCenter
    /// Whether a notification has reported where the app is.
    private let isKnown = NIOLockedValueBox(false)
    private var observers: [any NSObjectProtocol] = []
    #if canImport(Network)
    private var monitor: NWPathMonitor?
    #endif

    /// Calls back with each event, one after another, until the token is released. As far as the system allows, the process isn't suspended in the
    /// background before the callback for that event has returned.
    ///
    /// - Parameter check: Runs once, because no notification reports that the app started in the background. A notification that arrives before
    ///   the answer is newer and wins. If nil, nothing is checked.
    static func follow(
        _ center: NotificationCenter = .default, holding hold: @escaping Hold = SystemEvents.hold,
        checking check: BackgroundCheck? = nil,
        _ callback: @escaping @Sendable (Event) async -> Void
    ) -> ObservationToken {
        let (notices, continuation) = AsyncStream.makeStream(of: Notice.self)
        let task = Task {
            let source = SystemEvents(center)
            await source.begin(continuation, hold)
            // In parallel with the events, which don't wait for the answer: the main actor may be busy.
            if let check { Task { await source.run(check, continuation, hold) } }
            for await notice in notices {
                await callback(notice.event)
                notice.release()
            }
            await source.end()
        }
        return ObservationToken(task: task)
    }

    /// On systems that suspend an app soon after it moves to the background, asks for time to end the connection, and to release files: an app suspended
    /// with a lock on files of an App Group is terminated. Elsewhere it does nothing.
    static func hold() -> @Sendable () -> Void {
        #if canImport(Darwin) && !os(macOS)
        let isDone = DispatchSemaphore(value: 0)
        // The process runs while this waits, on one of the system's threads. If the time runs out first, the system calls again to end the wait.
        ProcessInfo.processInfo.performExpiringActivity(withReason: "Ending the chat's connection") { isExpired in
            if isExpired { isDone.signal() } else { isDone.wait() }
        }
        return { isDone.signal() }
        #else
        return {}
        #endif
    }

    /// Whether the app is in the background. Nil where the system can't be asked: without UIKit, as on macOS and Linux, and on watchOS; in
    /// extensions, which mustn't ask it; and while there is no `UIApplication`.
    static func isInBackground() async -> Bool? {
        #if canImport(Darwin) && !os(macOS) && !os(watchOS)
        // By name, like the notifications: UIKit isn't linked.
        return await MainActor.run { () -> Bool? in
            let shared = NSSelectorFromString("sharedApplication")
            guard Bundle.main.bundleURL.pathExtension != "appex",
                let type = NSClassFromString("UIApplication") as? NSObject.Type, type.responds(to: shared),
                let application = type.perform(shared)?.takeUnretainedValue() as? NSObject,
                let state = application.value(forKey: "applicationState") as? Int
            else { return nil }
            // `UIApplication.State.background`.
            return state == 2
        }
        #else
        return nil
        #endif
    }

    private init(_ center: NotificationCenter) { self.center = center }

    private func run(_ check: BackgroundCheck, _ notices: AsyncStream<Notice>.Continuation, _ hold: Hold) async {
        guard await check() == true else { return }
        let notice = Notice(event: .alreadyInBackground, release: hold())
        let isDelivered = isKnown.withLockedValue { isKnown in
            // After the token is released, nothing consumes it.
            guard !isKnown, case .enqueued = notices.yield(notice) else { return false }
            return true
        }
        if !isDelivered { notice.release() }
    }

    private func begin(_ notices: AsyncStream<Notice>.Continuation, _ hold: @escaping Hold) {
        for (name, event) in Self.notifications {
            let observer = center.addObserver(forName: name, object: nil, queue: nil) { [isKnown] _ in
                // Before the event is sent: an answer that arrived in between would seem newer.
                isKnown.withLockedValue { $0 = true }
                // Here and not where the event is handled: a moment later the process may be suspended.
                let notice = event == .background ? Notice(event: event, release: hold()) : Notice(event: event)
                // After the token is released, nothing consumes it.
                if case .terminated = notices.yield(notice) { notice.release() }
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

/// Detects whether a network that the system reports is one to reconnect over.
struct PathChanges {
    private var last: [String]??

    /// - Parameter interfaces: The names of the interfaces that connect the device; nil while it isn't connected.
    /// - Returns: Whether the device is connected, and differently from before. The first report is no change.
    mutating func isNews(_ interfaces: [String]?) -> Bool {
        defer { last = .some(interfaces) }
        guard let last, let interfaces else { return false }
        return last != interfaces
    }
}
