import Hummingbird
import JWTKit
import Metrics
import NIOWebSocket
import ServiceLifecycle
