import RoostAPI
import RoostCore
import Testing

@Suite("SQL")
struct SQLTests {
    @Test("an interpolated value becomes a placeholder, never text")
    func binds() {
        let evil = "'; DROP TABLE users; --"
        let columns: SQL = "a, b"
        let none: String? = nil
        let sql: SQL =
            "SELECT \(columns) FROM t WHERE a = \(evil) AND b = \(3) AND c = \(none) AND d = \(true) AND e = \(ChannelRole.owner)"
        #expect(sql.text == "SELECT a, b FROM t WHERE a = ? AND b = ? AND c = ? AND d = ? AND e = ?")
        #expect(sql.values == [.text(evil), .integer(3), .null, .integer(1), .text("owner")])
    }

    @Test("a statement's pieces are the same whatever its values, and different for each text")
    func pieces() {
        func list(_ names: [String], isDescending: Bool = false) -> SQL {
            let order: SQL = isDescending ? "DESC" : "ASC"
            return "SELECT a FROM t WHERE a IN (\(list: names)) ORDER BY a \(order)"
        }
        #expect(list(["x"]).pieces == list(["y"]).pieces)
        #expect(list(["x", "y", "z"]).pieces == list(["x", "y", "z", "z"]).pieces)
        let texts = [
            list(["x"]), list(["x", "y"]), list(["x", "y", "z"]), list(["x"], isDescending: true), "SELECT 1", "", "\(1)",
            "\(1), \(2)",
        ]
        for (number, one) in texts.enumerated() {
            for (index, other) in texts.enumerated() {
                #expect((one.pieces == other.pieces) == (number == index), "\(one.text), \(other.text)")
            }
        }
        #expect(Set(texts.map(\.pieces)).count == texts.count)
        #expect(list(["x", "y", "z"]).text == "SELECT a FROM t WHERE a IN (?, ?, ?, ?) ORDER BY a ASC")
        #expect(list(["x", "y", "z"]).values == ["x", "y", "z", "z"].map(SQLValue.text))
        let kind = NewRow.Kind(into: "t (a, b)", "ON CONFLICT DO NOTHING")
        let rows = NewRow.inserting(
            [NewRow(kind, [.integer(1), .null]), NewRow(kind, [.integer(2), .text("x")])], failing: false)
        #expect(rows.text == "INSERT INTO t (a, b) VALUES (?, ?), (?, ?) ON CONFLICT DO NOTHING")
        #expect(rows.values == [.integer(1), .null, .integer(2), .text("x")])
    }

    @Test("a statement that begins with SELECT only reads, even if the word is a separate piece")
    func selections() {
        let beginning: SQL = "SELECT a"
        let selections: [SQL] = ["SELECT 1", "\(beginning) FROM t"]
        let others: [SQL] = ["", "SEL", "INSERT INTO t VALUES (1) RETURNING a", "\(1)", "WITH x AS (SELECT 1) DELETE FROM t"]
        #expect(selections.allSatisfy(\.isSelection) && !others.contains(where: \.isSelection))
    }
}
