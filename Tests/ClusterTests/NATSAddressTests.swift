#if Cluster
import Logging
import RoostTestSupport
import Testing

@testable import RoostServer

/// Values of `--bus`.
@Suite struct NATSAddressTests {
    @Test("addresses are read with their ports, users and tokens, and contain no user where the library may print them")
    func reads() throws {
        func address(
            _ servers: [String], isSecure: Bool = false, _ credentials: NATSAddress.Credentials? = nil
        ) throws -> NATSAddress {
            var address = try NATSAddress("nats://x")
            (address.servers, address.isSecure, address.credentials) = (servers, isSecure, credentials)
            return address
        }
        #expect(try NATSAddress("nats://localhost") == address(["localhost:4222"]))
        #expect(try NATSAddress("nats://10.0.0.1:5/") == address(["10.0.0.1:5"]))
        #expect(try NATSAddress("tls://a.example,tls://b.example:9") == address(["a.example:4222", "b.example:9"], isSecure: true))
        #expect(try NATSAddress("nats://[::1]:7, nats://[fe80::1%25eth0]") == address(["[::1]:7", "[fe80::1%25eth0]:4222"]))
        #expect(try NATSAddress("nats://t0ken@a") == address(["a:4222"], .token("t0ken")))
        let credentials = NATSAddress.Credentials.user("ann", password: "p@ss:w/rd")
        let read = try NATSAddress("nats://ann:p%40ss:w%2Frd@a:1,nats://ann:p%40ss:w/rd@b:2")
        #expect(read == (try address(["a:1", "b:2"], credentials)))
        #expect(read.urls == ["nats://a:1", "nats://b:2"])
    }

    @Test("an invalid address is refused with its place, and without anything that may be a secret")
    func refuses() {
        let wrong = [
            "": "the NATS address must begin with nats:// or tls://",
            "ann:s3cret@host": "the NATS address must begin with nats:// or tls://",
            "https://ann:s3cret@host": "the NATS address must begin with nats:// or tls://",
            "nats://ann:s3cret@": "the NATS address must name a host: nats://host:port",
            "nats://ann:s3cret@a b": "the NATS address must name a host: nats://host:port",
            "nats://ann:s3cret@a/path": "the NATS address must name a host: nats://host:port",
            "nats://ann:s3cret@a:port": "the NATS address has a port that isn't a number from 1 to 65535",
            "nats://ann:s3cret": "the NATS address has a port that isn't a number from 1 to 65535",
            "nats://ann:s3cret@a:0": "the NATS address has a port that isn't a number from 1 to 65535",
            "nats://ann:s3cret%ZZ@a":
                "the NATS address has an unreadable user before its @; special characters are written as %40 and the like",
            "nats://:s3cret@a":
                "the NATS address has an unreadable user before its @; special characters are written as %40 and the like",
            "nats://ann:s3cret%00@a": "the NATS address has a zero byte in its user or password",
            "nats://a,": "NATS address 2 of 2 must begin with nats:// or tls://",
            "nats://a,tls://b": "NATS addresses are all nats:// or all tls://, not both",
            "nats://ann:s3cret@a,nats://bob:s3cret@b": "all NATS addresses must have the same user and password",
        ]
        for (text, message) in wrong {
            let failure = #expect(throws: BusFailure.self, "\(text)") { try NATSAddress(text) }
            #expect(failure?.message == message, "\(text)")
        }
        for prefix in ["", "a.b", "a b", "*", String(repeating: "x", count: 65)] {
            #expect(throws: BusFailure.self) { try NATSSubjects(prefix: prefix) }
        }
    }

    @Test("a server with a password accepts nodes that know it, and a refusal of others names neither user nor password")
    func authenticates() async throws {
        let server = try await NATSServer.start(arguments: ["--user", "ann", "--pass", "s3cret w/rd"])
        let log = LogLines()
        let logger = Logger(label: "bus") { _ in log.handler }
        let known = try NATSBus(url: "nats://ann:s3cret%20w%2Frd@127.0.0.1:\(server.port)", logger: logger)
        try known.start { _ in }
        try known.settle()
        known.stop()

        let unknown = try NATSBus(url: "nats://ann:hunter2@127.0.0.1:\(server.port)", logger: logger)
        let failure = #expect(throws: BusFailure.self) { try unknown.start { _ in } }
        #expect(failure?.message == "NATS at 127.0.0.1:\(server.port): Authentication Violation")
        unknown.stop()
        let said = log.all.joined(separator: "\n")
        for secret in ["s3cret", "hunter2"] { #expect(!said.contains(secret)) }
        await server.stop()
    }
}
#endif
