public import Foundation
public import NIOSSL

/// Certificates for tests' servers. Each is self-signed, no machine trusts it, and all but one are valid from 2024 to 2123.
///
/// They share a key, which anyone can read in this file: it protects nothing.
public enum TestCertificate: String, Sendable {
    /// For the host `localhost`, and not for its address.
    case localhost
    /// For the address 127.0.0.1.
    case loopback
    /// For the host `other.example`.
    case other
    /// For the host `localhost`, valid in 2023.
    case expired

    /// For a client that has to trust it.
    public var parsed: NIOSSLCertificate { get throws { try NIOSSLCertificate(bytes: Array(text.utf8), format: .pem) } }

    /// Writes the certificate and its key to files, for programs that read them there.
    public func write(to directory: URL) throws -> (certificate: URL, key: URL) {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let (certificate, key) = (directory.appending(path: "\(rawValue).pem"), directory.appending(path: "key.pem"))
        try Data("\(text)\n".utf8).write(to: certificate)
        try Data("\(Self.keyText)\n".utf8).write(to: key)
        return (certificate, key)
    }

    /// TLS for a server that shows this certificate.
    func serverContext() throws -> NIOSSLContext {
        let key = try NIOSSLPrivateKey(bytes: Array(Self.keyText.utf8), format: .pem)
        let chain = [NIOSSLCertificateSource.certificate(try parsed)]
        return try NIOSSLContext(
            configuration: .makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key)))
    }

    private var text: String {
        switch self {
        case .localhost:
            """
            -----BEGIN CERTIFICATE-----
            MIIBljCCATugAwIBAgIURdBn6y9KNUQapGHYZH+CuO2iTHowCgYIKoZIzj0EAwIw
            FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI0MDEwMTAwMDAwMFoYDzIxMjMxMjA4
            MDAwMDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
            PQMBBwNCAARsbHRAWbhje9Bo6po+Zs/TlutL/w9bYVMvrSsWHoFV1zHKvROpgNnh
            rXQN5Zoc8Y3sOuSvNus3xUjFE6aJ+UBbo2kwZzAdBgNVHQ4EFgQUKGj94+CO7PEt
            OPC2w0yGWB6g1V8wHwYDVR0jBBgwFoAUKGj94+CO7PEtOPC2w0yGWB6g1V8wDwYD
            VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
            SQAwRgIhAJh1pvtj3XHKIF6HGqWEivkUMMzHM1FA3jXMmjRPulHdAiEA309drcAv
            qoCmWlhOiLN+tIpfcBt/J1/yztzEuNcnqZk=
            -----END CERTIFICATE-----
            """
        case .loopback:
            """
            -----BEGIN CERTIFICATE-----
            MIIBkTCCATagAwIBAgIUDwUdR/38pY53cyXjw6Y/n/+0+yEwCgYIKoZIzj0EAwIw
            FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI0MDEwMTAwMDAwMFoYDzIxMjMxMjA4
            MDAwMDAwWjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
            PQMBBwNCAARsbHRAWbhje9Bo6po+Zs/TlutL/w9bYVMvrSsWHoFV1zHKvROpgNnh
            rXQN5Zoc8Y3sOuSvNus3xUjFE6aJ+UBbo2QwYjAdBgNVHQ4EFgQUKGj94+CO7PEt
            OPC2w0yGWB6g1V8wHwYDVR0jBBgwFoAUKGj94+CO7PEtOPC2w0yGWB6g1V8wDwYD
            VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0kAMEYC
            IQCGRpSi5vNEHTqZLgB1dvti1lYVL8inQ0pYjJqCwQC/HQIhAINTwAqGhakVz0ap
            Z77AtXdyldLw6cuwIE29wdcknvPc
            -----END CERTIFICATE-----
            """
        case .other:
            """
            -----BEGIN CERTIFICATE-----
            MIIBoDCCAUegAwIBAgIUWc8KhyWe9YBS+BOuXqmCxmwRfNEwCgYIKoZIzj0EAwIw
            GDEWMBQGA1UEAwwNb3RoZXIuZXhhbXBsZTAgFw0yNDAxMDEwMDAwMDBaGA8yMTIz
            MTIwODAwMDAwMFowGDEWMBQGA1UEAwwNb3RoZXIuZXhhbXBsZTBZMBMGByqGSM49
            AgEGCCqGSM49AwEHA0IABGxsdEBZuGN70Gjqmj5mz9OW60v/D1thUy+tKxYegVXX
            Mcq9E6mA2eGtdA3lmhzxjew65K826zfFSMUTpon5QFujbTBrMB0GA1UdDgQWBBQo
            aP3j4I7s8S048LbDTIZYHqDVXzAfBgNVHSMEGDAWgBQoaP3j4I7s8S048LbDTIZY
            HqDVXzAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDW90aGVyLmV4YW1wbGUw
            CgYIKoZIzj0EAwIDRwAwRAIgewJSzcsmw0dN98FHXhVil4W3XL4sBEJ5ksmuuhW9
            9oYCIGmLs9iUTxWwIAf8AbEMbJ5pcFhpVWDAsjAdn8odhVN8
            -----END CERTIFICATE-----
            """
        case .expired:
            """
            -----BEGIN CERTIFICATE-----
            MIIBkzCCATmgAwIBAgIUOiWMz/9Bjh6kpk2J4Ysi3tFDpZ4wCgYIKoZIzj0EAwIw
            FDESMBAGA1UEAwwJbG9jYWxob3N0MB4XDTIzMDEwMTAwMDAwMFoXDTIzMTIzMTAw
            MDAwMFowFDESMBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
            AQcDQgAEbGx0QFm4Y3vQaOqaPmbP05brS/8PW2FTL60rFh6BVdcxyr0TqYDZ4a10
            DeWaHPGN7DrkrzbrN8VIxROmiflAW6NpMGcwHQYDVR0OBBYEFCho/ePgjuzxLTjw
            tsNMhlgeoNVfMB8GA1UdIwQYMBaAFCho/ePgjuzxLTjwtsNMhlgeoNVfMA8GA1Ud
            EwEB/wQFMAMBAf8wFAYDVR0RBA0wC4IJbG9jYWxob3N0MAoGCCqGSM49BAMCA0gA
            MEUCIQCZbUESy8dPt1iKiwPsAbJYc4VovLco0Ji0YisK+XENegIgF29rjI+Il+kj
            WTJuJghvxvXuz4APBoHYpt5kIJGMzEQ=
            -----END CERTIFICATE-----
            """
        }
    }

    private static let keyText = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNhpJAvVl0BhD74b3
        uwOOqHHKFw08t69H7a6WmiKvk7qhRANCAARsbHRAWbhje9Bo6po+Zs/TlutL/w9b
        YVMvrSsWHoFV1zHKvROpgNnhrXQN5Zoc8Y3sOuSvNus3xUjFE6aJ+UBb
        -----END PRIVATE KEY-----
        """
}
