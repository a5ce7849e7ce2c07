import Foundation
import RoostAPI
import Testing

@Suite("Timestamp")
struct TimestampTests {
    @Test(
        "AM-04 a moment is written as ISO-8601 with milliseconds and read back",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"), (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_772_368_205_250, "2026-03-01T12:30:05.250Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-2_203_891_200_000, "1900-03-01T00:00:00.000Z"), (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func writesAndReads(milliseconds: Int64, text: String) {
        let timestamp = Timestamp(milliseconds: milliseconds)
        #expect([timestamp.description, Timestamp(text)?.description] == [text, text])
        #expect(Timestamp(text)?.milliseconds == milliseconds)
    }

    @Test(
        "AM-04 years outside the wire's range take as many digits as they need",
        arguments: [
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"), (-62_135_596_800_001, "0000-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"), (-62_198_755_200_000, "-0001-01-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func writesOthers(milliseconds: Int64, text: String) {
        #expect(Timestamp(milliseconds: milliseconds).description == text)
    }

    @Test(
        "AM-04 text that isn't a moment in that form is refused",
        arguments: [
            "", "2026-03-01", "2026-03-01T12:30:05Z", "2026-03-01T12:30:05.25Z", "2026-03-01T12:30:05.2500Z",
            "2026-03-01 12:30:05.250Z",
            "2026-03-01T12:30:05.250", "2026-03-01T12:30:05.250z", "2026-13-01T12:30:05.250Z", "2026-00-01T12:30:05.250Z",
            "2026-04-31T12:30:05.250Z", "2026-03-00T12:30:05.250Z", "2023-02-29T12:30:05.250Z", "1900-02-29T12:30:05.250Z",
            "2100-02-29T12:30:05.250Z", "2026-03-01T24:00:00.000Z", "2026-03-01T12:60:05.250Z", "2026-03-01T12:30:60.250Z",
            "0000-01-01T00:00:00.000Z", "-001-01-01T00:00:00.000Z", "2026-03-01T12:30:05,250Z", "2026-03-01T+1:30:05.250Z",
            "２026-03-01T12:30:05Z", "2026-03-01T12:30:05.250Zx",
        ])
    func refuses(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test("AM-04 every day of 800 years is written as Foundation's calendar writes it")
    func agreesWithTheCalendar() {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        var wrong: [String] = []
        for day in stride(from: Int64(-110_000), to: 182_000, by: 1) {
            let timestamp = Timestamp(milliseconds: day * 86_400_000 + 45_296_789)
            if Timestamp(timestamp.description) != timestamp { wrong.append("\(timestamp)") }
            guard day % 61 == 0 else { continue }
            let parts = calendar.dateComponents([.year, .month, .day], from: Date(timeIntervalSince1970: Double(day) * 86_400))
            let expected = String(format: "%04d-%02d-%02dT12:34:56.789Z", parts.year ?? 0, parts.month ?? 0, parts.day ?? 0)
            if timestamp.description != expected { wrong.append("\(timestamp) is \(expected)") }
        }
        #expect(wrong == [])
    }

    @Test("D-07 a moment after some seconds; forever after −1, for nil, and past the last moment that can be written")
    func afterSeconds() {
        let start = Timestamp(milliseconds: 1_500)
        let last = (Timestamp.forever.milliseconds - 1_500) / 1000
        let ends = [0, 1, 3_155_760_000, Int(last), Int(last) + 1, .max, -1, .min, nil].map { start.after(seconds: $0) }
        let expected = [1_500, 2_500, 3_155_760_001_500, 1_500 + last * 1000].map(Timestamp.init(milliseconds:))
        #expect(ends == expected + Array(repeating: .forever, count: 5))
        #expect(Timestamp(milliseconds: .max).after(seconds: 1) == .forever)
        #expect(Timestamp.forever.description == "9999-12-31T23:59:59.999Z")
    }

    @Test("D-38 a time to wait that the server gives as a number is a Duration too, and never negative")
    func durations() {
        let waits = [1500, 0, -1, nil].map { RoostError(.overloaded, "Later.", retryAfterMilliseconds: $0).retryAfter }
        #expect(waits == [.milliseconds(1500), .zero, .zero, nil])
        #expect([60, -1].map { UserPresences(users: [], pollSeconds: $0).pollInterval } == [.seconds(60), .zero])
    }
}
