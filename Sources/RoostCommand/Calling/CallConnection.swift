import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import RoostAPI
import RoostServer

/// A connection for some successive calls.
///
/// Over HTTP, unlike a `Chat`: it follows and stores nothing, so a call costs one response however many channels the user has, and doesn't
/// make the user appear online. It doesn't retry either: a script should fail at once if there is no server.
final class CallConnection {
    /// The connection ended before a response. Whether the server has carried out the call is unknown.
    struct Lost: Error {
        fileprivate let address: String
        var failure: Failure { Failure("The server at \(address) closed the connection before it answered.") }
    }

    private let server: CallServer
    private let channel: any NIOCore.Channel
    private var incoming: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator
    private let outgoing: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>

    /// The most time that a response may take.
    private static let timeout = Duration.seconds(30)

    /// Connects, and closes the connection after the body.
    ///
    /// - Parameter certificates: Trusted in addition to the machine's, for tests with their own server. All checks stay.
    static func run(
        _ server: CallServer, trusting certificates: [NIOSSLCertificate] = [], _ body: (CallConnection) async throws -> Void
    ) async throws {
        let channel = try await connect(to: server, trusting: certificates)
        try await channel.executeThenClose { incoming, outgoing in
            try await body(
                CallConnection(server: server, channel: channel.channel, incoming: incoming.makeAsyncIterator(), outgoing: outgoing)
            )
        }
    }

    private init(
        server: CallServer, channel: any NIOCore.Channel,
        incoming: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator,
        outgoing: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>
    ) {
        (self.server, self.channel, self.incoming, self.outgoing) = (server, channel, incoming, outgoing)
    }

    /// Calls an operation and waits for its response.
    ///
    /// - Throws: The server's `RoostError`, or that of a limit without asking the server; a ``Failure`` if the responding server isn't
    ///   Roost; ``Lost`` if there was no response.
    func call<Call: RoostAPI.Operation>(_ operation: Call) async throws -> Call.Response {
        try operation.validate()
        let body = try await answer(to: try CallRequest(operation))
        do {
            return try JSONDecoder.forAnswers.decode(Call.Response.self, from: body)
        } catch {
            throw Failure("The response couldn't be read: \(PlainWords.reason(of: error)). Is the server a different version?")
        }
    }

    /// Sends a request and waits for the body of its response.
    ///
    /// - Throws: The server's `RoostError`; a ``Failure`` if the responding server isn't Roost; ``Lost`` if there was no response.
    func answer(to request: CallRequest) async throws -> Data {
        let (status, body) = try await exchange(request)
        guard status != 200 else { return body }
        guard let problem = try? JSONDecoder().decode(Problem.self, from: body) else {
            throw Failure(
                "The server at \(server.address) isn't Roost, or is a different version: it responded with status \(status).")
        }
        throw problem.refusal
    }

    private func exchange(_ request: CallRequest) async throws -> (status: Int, body: Data) {
        let (channel, start) = (channel, ContinuousClock.now)
        let timeout = channel.eventLoop.scheduleTask(in: TimeAmount(Self.timeout)) { channel.close(promise: nil) }
        defer { timeout.cancel() }
        // If the connection can no longer be written to, reading the response reports why.
        try? await outgoing.write(contentsOf: server.parts(of: request))
        do {
            var status = 0
            var body = Data()
            while let part = try await incoming.next() {
                switch part {
                case .head(let head): status = Int(head.status.code)
                case .body(let bytes): body.append(contentsOf: bytes.readableBytesView)
                case .end: return (status, body)
                }
            }
        } catch {
            if let failure = failure(after: error) { throw failure }
        }
        guard ContinuousClock.now - start < Self.timeout else {
            throw Failure("The server at \(server.address) didn't answer within \(Self.timeout.components.seconds) s.")
        }
        throw Lost(address: server.address)
    }

    /// Returns the failure that an error means for the server; nil if it only means that the connection ended.
    private func failure(after error: any Error) -> Failure? {
        switch error {
        case NIOSSLError.uncleanShutdown: nil
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            Failure("Can't make a secure connection to \(server.address): \(PlainWords.reason(of: error)).")
        case is HTTPParserError: Failure("The server at \(server.address) doesn't speak HTTP.")
        default: nil
        }
    }

    private static func connect(
        to server: CallServer, trusting certificates: [NIOSSLCertificate]
    ) async throws -> NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart> {
        // A client's default, which checks that the certificate is trusted and is for the host.
        var configuration = TLSConfiguration.makeClientConfiguration()
        if !certificates.isEmpty { configuration.additionalTrustRoots = [.certificates(certificates)] }
        let tls = server.isSecure ? try NIOSSLContext(configuration: configuration) : nil
        do {
            return try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup).connectTimeout(.seconds(10))
                .connect(host: server.host, port: server.port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let tls {
                            // A server name must not be an IP address (RFC 6066); the certificate is checked either way.
                            let name = server.isNumeric ? nil : server.host
                            try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                        }
                        try channel.pipeline.syncOperations.addHTTPClientHandlers()
                        return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                    }
                }
        } catch {
            throw Failure(
                "No server answers at \(server.address): \(PlainWords.reason(of: error)). Start one with \(server.startCommand), or name its address with --url."
            )
        }
    }
}
