#if Cluster
import Foundation
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// PostgreSQL over TLS: `sslmode=verify-full` in the address of a cluster's database.
@Suite struct SecureDatabaseTests {
    @Test("a node connects to PostgreSQL only if its certificate is trusted and for the host of the address")
    func certificates() throws {
        let directory = TemporaryDirectory.make()
        let trusted = try TestCertificate.localhost.write(to: directory).certificate
        let stranger = try TestCertificate.other.write(to: directory).certificate
        let server = try PostgreSQLServer(showing: .localhost)
        /// Why a node doesn't connect; nil if it does.
        func refusal(of host: String, trusting certificate: URL?) throws -> String? {
            let root = certificate.map { "&sslrootcert=\($0.path)" } ?? ""
            let address = "postgres://roost:secret@\(host):\(server.port)/postgres?sslmode=verify-full\(root)"
            do {
                _ = try PostgreSQLDatabase.examine(url: address)
                return nil
            } catch let failure as DatabaseFailure {
                #expect(!failure.message.contains("secret"))
                return failure.message
            }
        }

        #expect(try refusal(of: "localhost", trusting: trusted) == nil)
        // The same server and the same trust, with the other host.
        #expect(try refusal(of: "127.0.0.1", trusting: trusted)?.contains("does not match host name") == true)
        #expect(try refusal(of: "localhost", trusting: stranger)?.contains("certificate verify failed") == true)
        #expect(try refusal(of: "localhost", trusting: nil)?.contains("root certificate") == true)
        try server.stop()
    }

    @Test("a node configured for TLS doesn't use a database without it")
    func withoutTLS() throws {
        let port = try PostgreSQLServer.shared.port
        let failure = #expect(throws: DatabaseFailure.self) {
            try PostgreSQLDatabase.examine(url: "postgres://roost:secret@127.0.0.1:\(port)/postgres?sslmode=require")
        }
        #expect(failure?.message.contains("does not support SSL") == true)
    }
}
#endif
