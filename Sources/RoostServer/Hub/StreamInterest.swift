import RoostAPI
import RoostCore
import Synchronization

/// The streams that connections of one event loop get something of, so that a delivery wakes only loops with receivers
/// ([0105](docs/decisions/0105-a-delivery-wakes-loops-with-receivers.md)).
///
/// Streams are counted in a table of fixed size, in the place of their hash. Of a stream whose place is empty no connection gets anything; a place
/// that isn't empty can be another stream's, and the loop is then woken for nothing. The loop changes the table while it delivers, and any thread
/// may look at it: what it finds is valid for a loop that has finished all deliveries handed to it.
final class StreamInterest: Sendable {
    private static let placeCount = 65_536
    private let counts = Mutex<[UInt32]>(Array(repeating: 0, count: placeCount))

    private static func place(of stream: StreamID) -> Int { Int(UInt(bitPattern: stream.hashValue) % UInt(placeCount)) }

    /// Notes that the loop has its first connection that gets something of a stream.
    func add(_ stream: StreamID) {
        let place = Self.place(of: stream)
        counts.withLock { $0[place] &+= 1 }
    }

    /// Notes that the last of these connections is gone.
    func remove(_ stream: StreamID) {
        let place = Self.place(of: stream)
        counts.withLock { $0[place] &-= 1 }
    }

    /// How many streams there are.
    var streamCount: Int { counts.withLock { $0.reduce(0) { $0 + Int($1) } } }

    /// Whether steps of a delivery may have a receiver on the loop.
    ///
    /// - Parameter shard: The loop's index in the hub.
    func mayConcern(_ steps: [EventFrames.Step], shard: Int) -> Bool {
        counts.withLock { counts in
            steps.contains { step in
                switch step.receivers {
                case .all: true
                case .socket(let socket): socket.shard == shard
                case .stream(let stream): counts[Self.place(of: stream)] > 0
                }
            }
        }
    }
}

extension EventFrames.Step {
    /// The connections that a step can reach.
    enum Receivers {
        case all
        case socket(SocketID)
        /// Those that get something of a stream.
        case stream(StreamID)
    }

    var receivers: Receivers {
        switch self {
        case .send(let audience, _), .sendConcealable(let audience, _), .signal(_, let audience): .stream(audience.stream)
        case .tell(let user, _): .stream(.user(user))
        case .reply(let socket, _): .socket(socket)
        case .catchUp, .catchUpConcealable, .change, .watches, .attach, .attachWatcher: .all
        }
    }
}

extension Audience {
    /// The stream that its connections get something of.
    fileprivate var stream: StreamID {
        switch self {
        case .channel(let channel, _), .watchers(let channel, _), .moderators(let channel, _): .channel(channel)
        case .user(let user): .user(user)
        }
    }
}
