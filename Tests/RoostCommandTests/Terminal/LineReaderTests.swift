import RoostAPI
import Testing

@testable import RoostCommand

@Suite struct LineReaderTests {
    /// All lines of some pieces, and `!` with the reason for an invalid one.
    private func lines(_ pieces: [[UInt8]]) throws -> [String] {
        var reader = LineReader()
        var pieces = pieces[...]
        var lines: [String] = []
        while true {
            do {
                guard let line = try reader.next(reading: { pieces.popFirst() ?? [] }) else { return lines }
                lines.append(line)
            } catch let error as LineReader.InvalidLine {
                lines.append("!\(error)")
            }
        }
    }

    @Test("lines are returned without their ends, however their bytes arrive, the last one even without an end")
    func pieces() throws {
        let bytes = Array("one\r\n\ntwo é\nthree".utf8)
        let whole = ["one", "", "two é", "three"]
        #expect(try lines([bytes]) == whole)
        #expect(try lines(bytes.map { [$0] }) == whole)
        #expect(try lines([]) == [] && lines([Array("a\n".utf8)]) == ["a"])
    }

    @Test("a line that isn't UTF-8 or is too long is reported, little of it is kept, and the next one is read")
    func unfit() throws {
        #expect(try lines([[0x61, 0xFF, 0x0A, 0x62, 0x0A]]) == ["!The line isn't UTF-8 text.", "b"])
        let long = [UInt8](repeating: 0x78, count: LineReader.sizeBytesMax + 1)
        let reason = "!The line is too long: a text has a limit of \(Limits.messageTextLength) characters."
        #expect(try lines([long, long, long, Array("y\nb".utf8)]) == [reason, "b"])
        #expect(try lines([long + Array("\nb\n".utf8)]) == [reason, "b"])
        #expect(try lines([Array(long.dropLast()), [0x0A], [0x62]]).map(\.utf8.count) == [LineReader.sizeBytesMax, 1])
    }
}
