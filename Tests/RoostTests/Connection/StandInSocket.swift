import Foundation
import RoostAPI
import Synchronization

@testable import Roost

/// A socket like URLSession's, and its peer in one. It is run by ``MessageSocket/run(_:_:)``.
final class StandInSocket: MessageSocket, TransportPeer {
    private let state = Mutex(PeerLog())
    private let behaviour: PeerBehaviour
    private let openingError: URLError?
    private let (incoming, echo) = AsyncStream.makeStream(of: Result<String, any Error>.self)
    /// Ends what is never answered.
    private let abandonment = CallbackAnswer()

    /// - Parameter openingError: The error with which opening fails.
    init(_ behaviour: PeerBehaviour = .answers, openingError: URLError? = nil) {
        self.behaviour = behaviour
        self.openingError = openingError
    }

    var log: PeerLog { state.withLock { $0 } }

    func stop() {}

    func open() async throws {
        state.withLock { $0.isReached = true }
        if let openingError { throw openingError }
        switch behaviour {
        case .answers, .ignoresPings: break
        case .silent: try await abandonment.wait()
        case .refuses: throw URLError(.badServerResponse)
        case .absent: throw URLError(.cannotConnectToHost)
        }
    }

    func send(_ text: String) async throws {
        state.withLock { $0.texts.append(text) }
        switch text {
        case "bye": echo.yield(.failure(Self.goodbye))
        case "break": echo.yield(.failure(URLError(.networkConnectionLost)))
        case "refuse": throw URLError(.networkConnectionLost)
        case "flood":
            for number in 0..<Self.floodCount { echo.yield(.success(Self.longText(number))) }
            state.withLock { $0.hasFlooded = true }
        default: echo.yield(.success(text))
        }
    }

    func receive() async throws -> String {
        var iterator = incoming.makeAsyncIterator()
        guard let next = await iterator.next() else { throw SocketClosed(code: nil, reason: "abandoned") }
        let text = try next.get()
        state.withLock { $0.takenCount += 1 }
        return text
    }

    func ping() async throws { if case .ignoresPings = behaviour { try await abandonment.wait() } }

    func close() {
        state.withLock { $0.hasHeardGoodbye = true }
        echo.finish()
    }

    func abandon() {
        state.withLock { $0.isLeft = true }
        abandonment.end(.failure(URLError(.cancelled)))
        echo.finish()
    }
}
