import RoostAPI
import RoostCore
import Synchronization

/// The streams that have receivers among the connections of one event loop: a delivery only wakes loops with receivers
/// ([0105](docs/decisions/0105-a-delivery-wakes-only-event-loops-with-receivers.md)).
///
/// Streams are counted in a table of fixed size, at the index of their hash. A stream whose entry is 0 has no receiver on the loop; another entry
/// may belong to a different stream with the same index, and then the loop is woken for nothing. Receivers are only added while the loop
/// delivers, and any thread may read the table: an entry of 0 is valid if the loop has finished all deliveries handed to it.
final class StreamInterest: Sendable {
    private static let placeCount = 65_536
    private let counts = Mutex<[UInt32]>(Array(repeating: 0, count: placeCount))

    private static func place(of stream: StreamID) -> Int { Int(UInt(bitPattern: stream.hashValue) % UInt(placeCount)) }

    /// Notes that the loop has its first receiver of a stream.
    func add(_ stream: StreamID) {
        let place = Self.place(of: stream)
        counts.withLock { $0[place] &+= 1 }
    }

    /// Notes that the loop's last receiver of a stream is gone.
    func remove(_ stream: StreamID) {
        let place = Self.place(of: stream)
        counts.withLock { $0[place] &-= 1 }
    }

    /// For tests alone: how many streams have receivers on the loop.
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
        /// Those that receive events or signals of a stream.
        case stream(StreamID)
    }

    var receivers: Receivers {
        switch self {
        case .send(let audience, _), .sendConcealable(let audience, _), .signal(_, let audience): .stream(audience.stream)
        case .sendToUser(let user, _): .stream(.user(user))
        case .reply(let socket, _): .socket(socket)
        case .catchUp, .catchUpConcealable, .change, .watches, .attach, .attachWatcher: .all
        }
    }
}

extension Audience {
    /// The stream whose receivers include its connections.
    fileprivate var stream: StreamID {
        switch self {
        case .channel(let channel, _), .watchers(let channel, _): .channel(channel)
        case .user(let user): .user(user)
        }
    }
}
