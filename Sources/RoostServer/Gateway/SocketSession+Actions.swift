import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore

extension SocketSession {
    enum State {
        case unauthenticated
        case authenticating
        case connecting
        case open
        case closing
    }

    var isAuthenticating: Bool { state == .authenticating }
    var isOpen: Bool { state == .open }
    var isClosing: Bool { state == .closing }

    /// The size a control frame counts in addition to its payload before authentication: even an empty ping is answered.
    static let controlFrameBytes = 6

    /// The refusal of a call whose reply couldn't be distinguished from another's.
    static let repeatedNumber = RoostError.invalidArgument("call", "is the number of a call that hasn't been answered yet")

    /// From this size on, output doesn't wait for more: a larger write isn't cheaper.
    static let unflushedBytesMax = 64 << 10

    /// Limits on one socket. Each bounds something that a client could otherwise make grow.
    struct Configuration: Sendable {
        var authenticationTimeout = TimeAmount.seconds(10)
        var pingInterval = TimeAmount.seconds(25)
        /// Silence after which the client is considered gone.
        var idleTimeout = TimeAmount.seconds(60)
        /// Limits on what is held for the socket.
        var budget = SocketBudget.Configuration()
        /// How long a client may leave output unread.
        var readStallTimeout = TimeAmount.seconds(30)
        /// The same while at least half of the server's memory budget is used.
        var readStallTimeoutUnderPressure = TimeAmount.seconds(1)
    }

    /// The state of the shared budgets at the moment of a call.
    struct Pressure: Hashable, Sendable {
        /// The user's budget is used up, over all connections.
        var isUserFull = false
        /// The budget of all clients is used up, or half used.
        var isServerFull = false
        var isServerHalfFull = false
    }

    /// An action for the driver.
    enum Action: Equatable {
        /// Write bytes. Then call ``flushed(_:)``, after the other actions.
        case flush(UnflushedBytes)
        case setReading(Bool)
        /// The number of bytes held for the client changes by this.
        case hold(Int)
        /// Have a token checked: ``verified(_:)``, ``refuseToken(_:)`` or ``turnAway(_:)`` follows.
        case verify(token: String)
        /// Have the connection take its place in the order of commits. Its welcome follows as a reply, or else ``refuseConnection(_:)``.
        case connect(VerifiedToken)
        /// Run the operation. If it can't run, ``refuse(_:_:)`` follows.
        case call(Call)
        /// The client has received channels up to these seqs while its user is reading them: mark them as read.
        case read([ChannelID: Seq])
        /// A frame without a readable operation was refused.
        case refused(RoostError)
        /// The socket is closed because there is no room for the rest of its message.
        case overloaded
        /// Call ``restart()`` after this time.
        case restart(after: TimeAmount)
        /// Close the connection, after the bytes handed over. The code is the server's, or the client's if it has closed.
        case close(WebSocketErrorCode)
        /// The connection is gone without a close code.
        case lost
    }

    /// A call, with its number.
    struct Call: Equatable {
        let number: Int64
        let operation: any Handled
        /// Nil for a call that is carried out each time it arrives.
        var key: IdempotencyKey?
        /// Its bytes that count against the budgets until its job is done, even if the socket is gone; 0 for a small call.
        var heldBytes = 0

        static func == (left: Call, right: Call) -> Bool {
            left.number == right.number && left.key == right.key && AnyHashable(left.operation) == AnyHashable(right.operation)
        }
    }
}
