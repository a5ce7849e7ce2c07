// Foundation has it on Apple's systems. `scripts/check-apple` type-checks this file on Linux too, against Linux's Foundation.
#if canImport(Darwin)
public import Foundation
public import RoostAPI
#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A WebSocket of URLSession, which uses the system's proxies, and VPNs that connect on demand.
///
///     var configuration = Chat.Configuration()
///     configuration.transport = URLSessionTransport()
///
/// It sends and accepts the same messages as ``WebSocketTransport``.
public struct URLSessionTransport: Transport {
    private let configuration: URLSessionConfiguration
    private let messageSizeBytesMax: Int

    /// Creates a transport with a separate session for each connection.
    ///
    /// - Parameters:
    ///   - configuration: The session's configuration, which is copied. Its timeouts aren't used: a connection may be idle, and the client detects
    ///     dead ones itself.
    ///   - messageSizeBytesMax: The most bytes of one message from the server.
    public init(configuration: URLSessionConfiguration = .default, messageSizeBytesMax: Int = 16 * 1_048_576) {
        self.configuration = configuration
        self.messageSizeBytesMax = messageSizeBytesMax
    }

    public func validate(_ url: URL) throws(RoostError) { _ = try Address(url) }

    public func run(
        url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
    ) async {
        guard let address = try? Address(url).url else {
            return await receive(.closed(code: nil, reason: "the address isn't a server address: \(url)"))
        }
        let socket = URLSessionSocket(address, configuration, messageSizeBytesMax: messageSizeBytesMax)
        await socket.run(outgoing, receive)
        socket.abandon()
    }
}

/// One connection. It decides nothing: ``MessageSocket/run(_:_:)`` does.
private struct URLSessionSocket: MessageSocket {
    private let session: URLSession
    private let task: URLSessionWebSocketTask
    private let opening = CallbackAnswer()

    init(_ url: URL, _ configuration: URLSessionConfiguration, messageSizeBytesMax: Int) {
        let patient = configuration.copy() as? URLSessionConfiguration ?? .default
        // The configured timeouts would end an idle connection.
        patient.timeoutIntervalForRequest = 7 * 24 * 3600
        patient.timeoutIntervalForResource = 7 * 24 * 3600
        session = URLSession(configuration: patient, delegate: SocketDelegate(opening), delegateQueue: nil)
        task = session.webSocketTask(with: url)
        task.maximumMessageSize = messageSizeBytesMax
    }

    func open() async throws {
        task.resume()
        try await opening.wait()
    }

    func send(_ text: String) async throws { try await ended { try await task.send(.string(text)) } }

    func receive() async throws -> String {
        let message = try await ended { try await task.receive() }
        if case .string(let text) = message { return text }
        throw SocketClosed(code: nil, reason: "the server sent something other than text")
    }

    func ping() async throws {
        let answer = CallbackAnswer()
        task.sendPing { error in answer.end(error.map { .failure($0) } ?? .success(())) }
        try await answer.wait()
    }

    func close() {
        task.cancel(with: .normalClosure, reason: nil)
        session.finishTasksAndInvalidate()
    }

    func abandon() {
        task.cancel()
        // Until then the session retains its delegate.
        session.finishTasksAndInvalidate()
    }

    /// Replaces the error of a socket that has ended with the server's close code and reason.
    private func ended<Value>(_ step: () async throws -> Value) async throws -> Value {
        do {
            return try await step()
        } catch {
            guard task.closeCode != .invalid else { throw error }
            let reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? ""
            throw SocketClosed(code: UInt16(exactly: task.closeCode.rawValue), reason: reason)
        }
    }
}

/// Reports that a socket is open, or that it never will be.
private final class SocketDelegate: NSObject, URLSessionWebSocketDelegate, Sendable {
    private let opening: CallbackAnswer

    init(_ opening: CallbackAnswer) { self.opening = opening }

    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {
        opening.end(.success(()))
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        let text = reason.map { String(decoding: $0, as: UTF8.self) } ?? ""
        opening.end(.failure(SocketClosed(code: UInt16(exactly: closeCode.rawValue), reason: text)))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        opening.end(.failure(error ?? SocketClosed(code: nil, reason: "the connection ended")))
    }
}
#endif
