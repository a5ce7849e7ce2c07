import RoostAPI
import RoostCore
import Testing

@Suite("SQL")
struct SQLTests {
    @Test("X-01 an interpolated value becomes a placeholder, never text")
    func binds() {
        let evil = "'; DROP TABLE users; --"
        let columns: SQL = "a, b"
        let none: String? = nil
        let sql: SQL =
            "SELECT \(columns) FROM t WHERE a = \(evil) AND b = \(3) AND c = \(none) AND d = \(true) AND e = \(ChannelRole.owner)"
        #expect(sql.text == "SELECT a, b FROM t WHERE a = ? AND b = ? AND c = ? AND d = ? AND e = ?")
        #expect(sql.values == [.text(evil), .integer(3), .null, .integer(1), .text("owner")])
    }
}
