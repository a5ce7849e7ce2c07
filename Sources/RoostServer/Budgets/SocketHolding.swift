/// What is held for one socket, in the sum of the server and, once its user is known, in theirs.
struct SocketHolding {
    private let server: ByteLedger
    /// The bytes held for the user, on all connections; nil before authentication.
    private(set) var user: ByteLedger?
    private var sizeBytes = 0

    init(in server: ByteLedger) { self.server = server }

    /// - Parameter sizeBytes: Negative for released bytes.
    mutating func add(_ sizeBytes: Int) {
        self.sizeBytes += sizeBytes
        server.add(sizeBytes)
        user?.add(sizeBytes)
    }

    /// The socket is this user's, and so is what came behind its token: otherwise its release would leave the user's sum below zero, as room for more than
    /// a user may have.
    mutating func belong(to user: ByteLedger) {
        user.add(sizeBytes)
        self.user = user
    }
}
