import RoostAPI
import RoostCore

/// What connections show of their users' presence.
extension Subscriptions {
    mutating func sharePresence(of user: UserID, _ isShared: Bool, _ perform: (Action) -> Void) {
        for connection in connections(of: user) {
            guard let former = subscribers[connection], former.sharesPresence != isShared else { continue }
            var subscriber = former
            subscriber.sharesPresence = isShared
            subscribers[connection] = subscriber
            hidePresence(of: former, perform)
            showPresence(of: subscriber, perform)
            // Before the former watches end: if the channel had no watch meanwhile, changes on another loop would be lost.
            for channel in subscriber.watched.keys { perform(.startedWatching(user, channel, isShown: isShared)) }
            endWatches(of: former, perform)
        }
    }

    func showPresence(of subscriber: Subscriber, _ perform: (Action) -> Void) {
        guard subscriber.sharesPresence else { return }
        perform(.appeared(subscriber.user))
        if !subscriber.joined.isEmpty { perform(.cameOnline(subscriber.user, subscriber.joined)) }
    }

    func hidePresence(of subscriber: Subscriber, _ perform: (Action) -> Void) {
        guard subscriber.sharesPresence else { return }
        perform(.disappeared(subscriber.user))
        if !subscriber.joined.isEmpty { perform(.wentOffline(subscriber.user, subscriber.joined)) }
    }

    func endWatches(of subscriber: Subscriber, _ perform: (Action) -> Void) {
        guard !subscriber.watched.isEmpty else { return }
        perform(.stoppedWatching(subscriber.user, Set(subscriber.watched.keys), isShown: subscriber.sharesPresence))
    }
}
