import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// A WebSocket that sends and receives whole messages, like the system's own. The rest of a transport's work, ``run(_:_:)``, is shared by all of them.
///
/// Every function throws once the socket has ended: ``SocketClosed`` if there was a close frame.
protocol MessageSocket: Sendable {
    /// Connects. Returns once the socket is open.
    func open() async throws
    func send(_ text: String) async throws
    /// The next text message.
    func receive() async throws -> String
    /// Returns once the ping is answered.
    func ping() async throws
    /// Sends a close frame and ends the socket without waiting for an answer.
    func close()
    /// Ends the socket at once: all pending calls throw. Ending it again does nothing.
    func abandon()
}

/// The end of a socket, with the server's close code and reason.
struct SocketClosed: Error, Hashable {
    var code: UInt16?
    var reason: String
}

extension MessageSocket {
    /// Runs one connection, from its opening to its end, as ``Transport/run(url:outgoing:receive:)`` promises.
    func run(
        _ outgoing: AsyncStream<TransportCommand>, _ receive: @escaping @Sendable (TransportEvent) async -> Void
    ) async {
        await withTaskCancellationHandler {
            do {
                try await open()
            } catch {
                return await receive(Self.end(of: error))
            }
            await receive(.opened)
            await receive(await exchange(outgoing, receive))
        } onCancel: {
            abandon()
        }
    }

    /// Reads and writes until either ends, and returns how it ended. Nothing is received after that.
    private func exchange(
        _ outgoing: AsyncStream<TransportCommand>, _ deliver: @escaping @Sendable (TransportEvent) async -> Void
    ) async -> TransportEvent {
        // A ping requested while one is in flight is answered by the same pong.
        let (pings, ping) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let isClosing = NIOLockedValueBox(false)
        return await withTaskGroup(of: TransportEvent?.self) { group in
            group.addTask {
                do {
                    while true { await deliver(.message(Array(try await receive().utf8))) }
                } catch {
                    return Self.end(of: error)
                }
            }
            group.addTask {
                do {
                    for await command in outgoing {
                        switch command {
                        case .message(let bytes): try await send(String(decoding: bytes, as: UTF8.self))
                        case .ping: ping.yield()
                        }
                    }
                } catch {
                    return Self.end(of: error)
                }
                // If cancelled, the socket is abandoned without a close frame.
                guard !Task.isCancelled else { return nil }
                isClosing.withLockedValue { $0 = true }
                close()
                return nil
            }
            group.addTask {
                for await _ in pings {
                    // If it fails, so has the socket, which the reader reports.
                    guard (try? await self.ping()) != nil else { return nil }
                    await deliver(.heard)
                }
                return nil
            }
            defer { ping.finish() }
            var end: TransportEvent?
            while end == nil, let result = await group.next() {
                // Closing makes reading fail with some error, but it was the client that closed.
                end = isClosing.withLockedValue { $0 } ? .closed(code: nil, reason: "closed by the client") : result
            }
            abandon()
            group.cancelAll()
            return end ?? .closed(code: nil, reason: "the connection ended")
        }
    }

    // MARK: Why it ended

    private static func end(of error: any Error) -> TransportEvent {
        if let closed = error as? SocketClosed { return .closed(code: closed.code, reason: closed.reason) }
        let reason = reason(of: error)
        return .closed(code: nil, reason: reason.message, cause: reason.cause)
    }

    /// Says what went wrong, and where to look.
    static func reason(of error: any Error) -> WaitingReason {
        guard let error = error as? URLError else { return WaitingReason(.network, "\(error)") }
        return WaitingReason(cause(of: error.code), error.localizedDescription)
    }

    private static func cause(of code: URLError.Code) -> WaitingReason.Cause {
        switch code {
        case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired,
            .appTransportSecurityRequiresSecureConnection:
            .certificate
        // Something answers, but not with a WebSocket.
        case .badServerResponse, .userAuthenticationRequired, .redirectToNonExistentLocation, .httpTooManyRedirects: .upgrade
        default: .network
        }
    }
}

/// The result of a system function that calls back, perhaps before anything waits, and perhaps more than once: the first result counts.
final class CallbackAnswer: Sendable {
    private enum State {
        case begun
        case waiting(CheckedContinuation<Void, any Error>)
        case done(Result<Void, any Error>)
    }

    private let state = NIOLockedValueBox(State.begun)

    /// Returns once it has succeeded. One caller may wait. Cancelling is a result too: a system that has nothing more to do may not call back.
    ///
    /// - Throws: The error of the failure.
    func wait() async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLockedValue { state in
                    if case .done(let result) = state { return result }
                    state = .waiting(continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            end(.failure(CancellationError()))
        }
    }

    /// Sets the result. The first one counts.
    func end(_ result: Result<Void, any Error>) {
        let continuation: CheckedContinuation<Void, any Error>? = state.withLockedValue { state in
            switch state {
            case .done: return nil
            case .begun:
                state = .done(result)
                return nil
            case .waiting(let continuation):
                state = .done(result)
                return continuation
            }
        }
        continuation?.resume(with: result)
    }
}
