import RoostAPI
import Testing

@testable import RoostCommand

/// Times typed for `roost messages list` and `/goto`.
@Suite struct TimeArgumentTests {
    @Test(
        "a time is read with any offset and any fraction, and a day is its beginning in UTC",
        arguments: [
            ("2026-03-02", 1_772_409_600_000), ("2026-03-02T00:00:00Z", 1_772_409_600_000),
            ("2026-03-01T12:30:05.250Z", 1_772_368_205_250), ("2026-03-02T02:00:00+02:00", 1_772_409_600_000),
            ("2026-03-01T20:30:00-0330", 1_772_409_600_000), ("2024-02-29", 1_709_164_800_000),
        ] as [(String, Int64)])
    func times(text: String, milliseconds: Int64) {
        #expect(TimeArgument(argument: text)?.timestamp == Timestamp(milliseconds: milliseconds))
    }

    @Test(
        "a time with anything after it, and one that doesn't exist, is refused, not read as another time",
        arguments: [
            "2026-11-3x", "2026-11-3", "2026-1-28", "2026-02-31", "2025-02-29", "2026-13-01", "2026-00-10", "2026-11-28 ",
            "2026-11-28T", "2026-11-28T17:30Z", "2026-11-28T17:30:00", "2026-11-28T25:00:00Z", "2026-11-28T24:00:00Z",
            "2026-11-28T17:60:00Z", "2026-11-28T17:30:60Z", "2026-11-28T17:30:00.Z", "2026-11-28T17:30:00Zgarbage",
            "2026-11-28T17:30:00Z+01:00", "2026-11-28T17:30:00+01:60", "2026-11-28T17:30:00+24:00", "2026-02-31T00:00:00Z", "",
            "12:00", "yesterday",
        ])
    func refused(text: String) {
        #expect(TimeArgument(argument: text)?.timestamp == nil)
    }
}
