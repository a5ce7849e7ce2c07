import NIOWebSocket
import RoostAPI

extension WebSocketOpcode {
    /// The four bits on the wire.
    var wireValue: UInt8 { UInt8(webSocketOpcode: self) }
}

extension CloseCode {
    /// The close code for a refused token or user; nil for other refusals.
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
