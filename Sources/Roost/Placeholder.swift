import GRDB
import NIOSSL
import NIOWebSocket
