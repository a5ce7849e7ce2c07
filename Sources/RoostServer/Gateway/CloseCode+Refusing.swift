import NIOWebSocket
import RoostAPI

extension WebSocketOpcode {
    /// The four bits on the wire.
    var wireValue: UInt8 { UInt8(webSocketOpcode: self) }
}

extension CloseCode {
    /// What a socket is closed with whose token or user is refused; nil for other refusals.
    init?(refusing error: RoostError) {
        switch error.code {
        case .unauthenticated: self = .unauthenticated
        case .tokenExpired: self = .tokenExpired
        case .tokenRevoked: self = .tokenRevoked
        case .userDeactivated: self = .userDeactivated
        default: return nil
        }
    }
}
