/// A server that can't prove that it is the one in a client's address: a man in the middle.
public struct UntrustedServer: Sendable {
    /// What is wrong with its certificate.
    public enum Fault: Sendable {
        /// The client trusts none of its signers.
        case signature
        /// The client trusts it, and it is no longer valid.
        case expiry
        /// The client trusts it, for another host.
        case host
    }

    /// The certificate that it shows.
    public let certificate: TestCertificate
    /// The host in the client's address.
    public let host: String
    /// The certificates that the client trusts in addition to the machine's.
    public let trusted: [TestCertificate]
    public let fault: Fault

    /// At least one of each kind, by name and by number.
    public static let all = [
        UntrustedServer(certificate: .localhost, host: "localhost", trusted: [], fault: .signature),
        UntrustedServer(certificate: .localhost, host: "localhost", trusted: [.other], fault: .signature),
        UntrustedServer(certificate: .loopback, host: "127.0.0.1", trusted: [], fault: .signature),
        UntrustedServer(certificate: .expired, host: "localhost", trusted: [.expired], fault: .expiry),
        UntrustedServer(certificate: .other, host: "localhost", trusted: [.other], fault: .host),
        UntrustedServer(certificate: .other, host: "127.0.0.1", trusted: [.other], fault: .host),
        UntrustedServer(certificate: .localhost, host: "127.0.0.1", trusted: [.localhost], fault: .host),
    ]
}

/// A server that proves that it is the one in a client's address.
public struct TrustedServer: Sendable {
    /// The certificate that it shows, and that the client trusts.
    public let certificate: TestCertificate
    /// The host in the client's address, which the certificate is for.
    public let host: String

    /// By name and by number.
    public static let all = [
        TrustedServer(certificate: .localhost, host: "localhost"),
        TrustedServer(certificate: .loopback, host: "127.0.0.1"),
    ]
}
