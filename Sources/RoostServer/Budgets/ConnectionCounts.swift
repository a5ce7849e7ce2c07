import RoostAPI

/// Counts connections by address and user, and decides whether another is accepted.
///
/// A state machine without I/O. A connection counts for its address until a user authenticates on it, and for that user from then on: many users
/// behind one address, such as a carrier's NAT, aren't mistaken for one user with many connections.
struct ConnectionCounts {
    struct Configuration: Sendable {
        /// All connections except the reserve.
        var totalMax = 18_000
        /// The unauthenticated connections of one address.
        var unauthenticatedPerAddressMax = 1000
        /// The connections of one user. Admins and services, which are fully trusted, have no such limit.
        var perUserMax = 200
        /// Connections beyond these limits, for health checks only.
        var reserveMax = 128
    }

    /// Why a connection is refused.
    enum Refusal: String, CaseIterable, Sendable {
        case total, address, user, memory
    }

    enum Verdict: Equatable, Sendable {
        case accepted
        /// Only health checks are answered on it.
        case reserve(Refusal)
    }

    let limits: Configuration
    private(set) var total = 0
    private var unauthenticated: [ClientAddress: Int] = [:]
    private var users: [UserID: Int] = [:]

    init(limits: Configuration) { self.limits = limits }

    /// Counts an accepted connection. The address is nil if it isn't counted, such as a trusted proxy's.
    mutating func accept(from address: ClientAddress?) -> Verdict {
        guard total < limits.totalMax else { return .reserve(.total) }
        if let address {
            let count = unauthenticated[address] ?? 0
            guard count < limits.unauthenticatedPerAddressMax else { return .reserve(.address) }
            unauthenticated[address] = count + 1
        }
        total += 1
        return .accepted
    }

    /// Counts a proxy's connection for this address.
    mutating func attribute(to address: ClientAddress) -> Bool {
        let count = unauthenticated[address] ?? 0
        guard count < limits.unauthenticatedPerAddressMax else { return false }
        unauthenticated[address] = count + 1
        return true
    }

    /// Counts a connection for the user who authenticated on it, and no longer for its address.
    mutating func authenticate(_ user: UserID, from address: ClientAddress?, isLimited: Bool) -> Bool {
        let count = users[user] ?? 0
        guard !isLimited || count < limits.perUserMax else { return false }
        users[user] = count + 1
        release(address)
        return true
    }

    /// Ends the count of an admitted connection.
    mutating func end(from address: ClientAddress?, user: UserID?) {
        total -= 1
        if let user {
            let count = (users[user] ?? 1) - 1
            users[user] = count > 0 ? count : nil
        } else {
            release(address)
        }
    }

    private mutating func release(_ address: ClientAddress?) {
        guard let address else { return }
        let count = (unauthenticated[address] ?? 1) - 1
        unauthenticated[address] = count > 0 ? count : nil
    }
}
