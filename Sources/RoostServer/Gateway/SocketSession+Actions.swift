import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore

extension SocketSession {
    /// Limits on one socket. Each bounds something that a client could otherwise let grow.
    struct Configuration: Sendable {
        var authenticationTimeout = TimeAmount.seconds(10)
        var pingInterval = TimeAmount.seconds(25)
        /// Silence after which the client is taken to be gone.
        var idleTimeout = TimeAmount.seconds(60)
        /// What may be held for the socket.
        var budget = SocketBudget.Configuration()
        /// How long a client may leave what was sent unread.
        var unreadTimeout = TimeAmount.seconds(30)
        /// The same while the server holds half as much as it may.
        var unreadTimeoutUnderPressure = TimeAmount.seconds(1)
    }

    /// What is held for others too, as of the moment of a call.
    struct Pressure: Hashable, Sendable {
        /// As much as may be is held for the user, on all connections.
        var isUserFull = false
        /// As much as may be is held for all clients, or half of it.
        var isServerFull = false
        var isServerHalfFull = false
    }

    /// What the driver is to do.
    enum Action: Equatable {
        /// Hand bytes over, to go out with those that follow.
        case write(ByteBuffer)
        /// Hand bytes over, and send all. Then call ``flushed(_:)``, once what else is to be done is done.
        case flush(ByteBuffer)
        case setReading(Bool)
        /// So many bytes more are held for the client, or less.
        case hold(Int)
        /// Have a token checked: ``verified(_:)``, ``refuseToken(_:)`` or ``turnAway(_:)`` follows.
        case verify(token: String)
        /// Have the connection take its place in the order of commits. Its welcome comes as a reply; otherwise ``refuseConnection(_:)`` follows.
        case connect(VerifiedToken)
        /// Have the operation run. If it can't be, ``refuse(_:_:)`` follows.
        case call(Call)
        /// A frame was refused that no operation could be read from.
        case refused(RoostError)
        /// The socket is closed because nobody has room for what it goes on with.
        case overloaded
        /// Call ``restart()`` after this time.
        case restart(after: TimeAmount)
        /// Close the connection, behind what was handed over.
        case close(WebSocketErrorCode)
        /// The connection is gone, and nobody said why.
        case lost
    }

    /// A call, with its number.
    struct Call: Equatable {
        let number: Int64
        let operation: any Handled

        static func == (left: Call, right: Call) -> Bool {
            left.number == right.number && AnyHashable(left.operation) == AnyHashable(right.operation)
        }
    }
}
