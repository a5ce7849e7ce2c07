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
        /// The app is active. It may have been in the foreground all the time.
        case active
        case background
        /// The app was in the background before it was followed.
        case alreadyInBackground
        case otherNetwork
    }

    /// The notifications that say it, by their names: so no framework of a user interface is needed, which extensions don't have.
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

    /// Keeps the system from suspending the process, until what it returns is called.
    typealias Hold = @Sendable () -> @Sendable () -> Void

    /// Asks whether the app is in the background; nil if nobody knows.
    typealias Question = @Sendable () async -> Bool?

    /// An event, and what to call when what follows from it is done.
    private struct Notice: Sendable {
        var event: Event
        var release: @Sendable () -> Void = {}
    }

    private let center: NotificationCenter
    /// Whether a notification has said where the app is.
    private let isKnown = NIOLockedValueBox(false)
    private var observers: [any NSObjectProtocol] = []
    #if canImport(Network)
    private var monitor: NWPathMonitor?
    #endif

    /// Calls back with each event, one after another, until the token is released. The process isn't suspended in the background before the callback for that
    /// has returned, as far as the system allows it.
    ///
    /// - Parameter question: Asked once, for a beginning in the background: no notification says that. A notification that comes before its answer is newer, and wins.
    ///   If nil, nothing is asked.
    static func follow(
        _ center: NotificationCenter = .default, holding hold: @escaping Hold = SystemEvents.hold, asking question: Question? = nil,
        _ callback: @escaping @Sendable (Event) async -> Void
    ) -> ObservationToken {
        let (notices, continuation) = AsyncStream.makeStream(of: Notice.self)
        let task = Task {
            let source = SystemEvents(center)
            await source.begin(continuation, hold)
            // Beside the events, which don't wait for the answer: the main actor may be busy.
            if let question { Task { await source.ask(question, continuation, hold) } }
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

    /// Whether the app is in the background. Nil where the system can't be asked: without UIKit, as on macOS and Linux, and on watchOS; in extensions, which
    /// mustn't ask it; and as long as there is no `UIApplication`.
    static func isInBackground() async -> Bool? {
        #if canImport(Darwin) && !os(macOS) && !os(watchOS)
        // By its name, as the notifications: UIKit isn't linked.
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

    private func ask(_ question: Question, _ notices: AsyncStream<Notice>.Continuation, _ hold: Hold) async {
        guard await question() == true else { return }
        let notice = Notice(event: .alreadyInBackground, release: hold())
        let isTold = isKnown.withLockedValue { isKnown in
            // Nobody takes it once the token is released.
            guard !isKnown, case .enqueued = notices.yield(notice) else { return false }
            return true
        }
        if !isTold { notice.release() }
    }

    private func begin(_ notices: AsyncStream<Notice>.Continuation, _ hold: @escaping Hold) {
        for (name, event) in Self.notifications {
            let observer = center.addObserver(forName: name, object: nil, queue: nil) { [isKnown] _ in
                // Before it is told: an answer that comes in between would be taken for newer.
                isKnown.withLockedValue { $0 = true }
                // Here and not where it is handled: a moment later the process may not run any more.
                let notice = event == .background ? Notice(event: event, release: hold()) : Notice(event: event)
                // Nobody takes it once the token is released.
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
