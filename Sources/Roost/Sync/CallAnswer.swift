import RoostAPI

/// The answer to one of the app's calls: its frame, and what the machine has already read of it.
struct CallAnswer: Sendable {
    var bytes: [UInt8]
    /// The answer's value, if the machine had to know it.
    var value: (any Sendable)?

    /// Returns the value, which is decoded from the frame only if the machine hasn't done so.
    ///
    /// - Throws: The errors of decoding.
    func decoded<Value: Decodable & Sendable>(as type: Value.Type = Value.self) throws -> Value {
        if let value = value as? Value { return value }
        return try ReplyResult<Value>.decode(bytes)
    }
}

extension Sync {
    /// How to read the answer to an operation that names users.
    ///
    /// It is decoded as a whole, on the machine's actor. Foundation goes through all of its text even for a single member: decoding the users alone,
    /// and everything again for the caller, would be more work overall, and part of it would be done here anyway.
    struct NamingAnswer: Hashable, Sendable {
        private let operation: any UserNaming.Type

        init(to operation: any UserNaming.Type) { self.operation = operation }

        static func == (left: NamingAnswer, right: NamingAnswer) -> Bool {
            ObjectIdentifier(left.operation) == ObjectIdentifier(right.operation)
        }

        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(operation)) }

        /// Returns the part of an answer that the cache needs; nothing if it can't be read.
        fileprivate func read(_ bytes: [UInt8]) -> CachedAnswer {
            func answer<Call: UserNaming>(to operation: Call.Type) -> CachedAnswer {
                guard let value = try? ReplyResult<Call.Response>.decode(bytes) else { return .nothing }
                return .users(operation.users(in: value), of: value)
            }
            return answer(to: operation)
        }
    }

    /// The part of an answer that the cache needs, read once.
    enum CachedAnswer {
        case nothing
        case channel(ChannelView, mayHaveJoined: Bool)
        case invitations(Page<InvitationEntry>)
        /// With the whole answer.
        case users([UserSummary], of: any Sendable)
        case channels(Page<ChannelView>, exceptEnded: Set<ChannelID>)
        case watched(WatchedChannel)
        /// The answer can't be read, but the channel of the call is watched from now on.
        case unreadableWatch(ChannelID)

        init(_ effect: CacheEffect, _ bytes: [UInt8]) {
            func read<Value: Decodable>(_ value: Value.Type) -> Value? { try? ReplyResult<Value>.decode(bytes) }
            self = .nothing
            switch effect {
            case .nothing, .arrival: break
            case .membership, .channel:
                if let view = read(ChannelView.self) { self = .channel(view, mayHaveJoined: effect == .membership) }
            case .invitations: if let page = read(Page<InvitationEntry>.self) { self = .invitations(page) }
            case .users(let answer): self = answer.read(bytes)
            case .watchAll(let ended): if let page = read(Page<ChannelView>.self) { self = .channels(page, exceptEnded: ended) }
            case .watch(let channel):
                if let state = read(WatchedChannel.self) { self = .watched(state) } else { self = .unreadableWatch(channel) }
            case .watchEnded, .hold: if let state = read(WatchedChannel.self) { self = .watched(state) }
            }
        }

        /// The value of the whole answer; nil if not all of it was read.
        var value: (any Sendable)? {
            switch self {
            case .channel(let view, _): view
            case .invitations(let page): page
            case .channels(let page, _): page
            case .watched(let state): state
            case .users(_, let answer): answer
            case .nothing, .unreadableWatch: nil
            }
        }
    }
}
