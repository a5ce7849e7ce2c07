import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Roost
import RoostAPI
import RoostServer

/// Failures in plain words. Errors of libraries and the system describe themselves in their own terms, with paths of their sources.
enum PlainWords {
    /// The reason of a failure: a sentence, or the part of one after a colon.
    static func reason(of error: any Error) -> String {
        switch error {
        case let error as RoostError: error.message.safe()
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case let error as NIOConnectionError: reason(of: error)
        case let error as DecodingError: reason(of: error)
        case ChannelError.connectTimeout: "it didn't answer in time"
        case is ChannelError, NIOSSLError.uncleanShutdown: "the connection was closed"
        case is HTTPParserError: "the server there doesn't speak HTTP"
        case is CocoaError, is POSIXError: SystemError.reason(of: error).safe()
        default: cleaned("\(error)").safe()
        }
    }

    /// The same with the code and the end of a server's error.
    static func line(of error: any Error) -> String { (error as? RoostError)?.summaryLine ?? reason(of: error) }

    private static func reason(of error: NIOConnectionError) -> String {
        if let first = error.connectionErrors.first { return reason(of: first.error) }
        let unknown = (error.dnsAError ?? error.dnsAAAAError) as? SocketAddressError.UnknownHost
        return WebSocketTransport.reason(ofUnresolved: error.host, code: unknown?.errorCode)
    }

    private static func reason(of error: DecodingError) -> String {
        let (path, what): ([any CodingKey], String) =
            switch error {
            case .keyNotFound(let key, let context): (context.codingPath + [key], "is missing")
            case .typeMismatch(_, let context), .valueNotFound(_, let context): (context.codingPath, "has a different form")
            case .dataCorrupted(let context): (context.codingPath, "can't be read")
            @unknown default: ([], "can't be read")
            }
        let field = path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
        return (field.isEmpty ? "it" : field).safe() + " " + what
    }

    /// Returns a description with the parts by TLS and the system in plain words; others are returned unchanged.
    ///
    /// The client's own reasons are such texts (``WaitingReason/message``).
    static func cleaned(_ text: String) -> String {
        if let reason = tlsReasons.first(where: { text.contains($0.name) })?.reason {
            // The part before the error is already a sentence.
            let start = text.firstRange(of: /:? ?(handshakeFailed|NIOSSL|BoringSSL)/).map { String(text[..<$0.lowerBound]) } ?? ""
            return start.isEmpty ? reason : "\(start): \(reason)"
        }
        // read(descriptor:pointer:size:): Connection reset by peer) (errno: 104)
        return text.replacing(/[A-Za-z]+\([A-Za-z:]*\): ([^()]*)\)? \(errno: [0-9]+\)/) { String($0.1) }
            .replacing("Inappropriate operation for state", with: "the connection was closed")
    }

    /// BoringSSL has one name for every reason not to trust a certificate.
    private static let untrusted =
        "this machine doesn't trust its certificate, or it has expired (or this machine's clock is wrong)"

    /// Keyed by BoringSSL's names.
    private static let tlsReasons: [(name: String, reason: String)] = [
        ("CERTIFICATE_VERIFY_FAILED", untrusted),
        ("unableToValidateCertificate", untrusted),
        ("failedToValidateHostname", "its certificate is for another host"),
        ("WRONG_VERSION_NUMBER", "it doesn't speak TLS; perhaps the address should begin with http, not https"),
        ("HTTP_REQUEST", "it doesn't speak TLS; perhaps the address should begin with http, not https"),
        ("PROTOCOL_VERSION", "it supports no version of TLS that this program does"),
        ("HANDSHAKE_FAILURE", "it refuses the TLS handshake"),
        ("handshakeFailed", "the TLS handshake failed"),
    ]
}

extension WaitingReason {
    /// The reason as shown.
    var words: String { PlainWords.cleaned(message).safe() }
}

extension Failure {
    /// The failure that a command reports for an error.
    init(_ error: any Error) { self = error as? Failure ?? Failure(PlainWords.reason(of: error)) }
}
