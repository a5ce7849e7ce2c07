/// The bytes held for one socket, counted for the server and, once the socket's user is known, for the user.
struct SocketAccount {
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

    /// Assigns the socket to a user, with the bytes received after its token. Otherwise releasing them would take the user's sum below zero, which
    /// would count as extra room.
    mutating func belong(to user: ByteLedger) {
        user.add(sizeBytes)
        self.user = user
    }
}
