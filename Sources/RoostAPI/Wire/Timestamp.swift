/// A moment in UTC, to the millisecond: ISO-8601 on the wire (AM-04), Unix milliseconds in memory and in the database.
///
/// Order never comes from a timestamp: streams are ordered by their seq.
public struct Timestamp: Hashable, Comparable, Codable, Sendable, SchemaDescribed, CustomStringConvertible {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public let milliseconds: Int64

    // derived: init
    /// Creates a value with these fields.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    public static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

    /// Stands for no end: the last moment of the year 9999.
    public static let forever = Timestamp(milliseconds: 253_402_300_799_999)

    /// The nearest moment that JSON can express, in the years 1 to 9999.
    package var nearestOnTheWire: Timestamp { min(max(self, Timestamp(milliseconds: -62_135_596_800_000)), .forever) }

    /// This moment plus some seconds; ``forever`` for nil and for a negative number: on the wire −1 means no end (D-07).
    package func after(seconds: Int?) -> Timestamp {
        guard let seconds, seconds >= 0 else { return .forever }
        let (milliseconds, isTooLong) = Int64(seconds).multipliedReportingOverflow(by: 1000)
        let (sum, isTooLate) = self.milliseconds.addingReportingOverflow(milliseconds)
        return isTooLong || isTooLate ? .forever : min(Timestamp(milliseconds: sum), .forever)
    }

    /// `2026-03-01T12:30:05.250Z`
    public var description: String {
        var json = JSONBytes(capacity: 24)
        write(digits: &json)
        return String(decoding: json.bytes, as: UTF8.self)
    }

    /// Writes ``description``. Years before 0 and after 9999, which never occur on the wire, take as many digits as they need.
    func write(digits json: inout JSONBytes) {
        let days = floorDivide(milliseconds, 86_400_000)
        let millisecondOfDay = milliseconds &- days &* 86_400_000
        let (year, month, day) = Self.civil(fromDays: days)
        if !(0...9999).contains(year) {
            if year < 0 { json.raw("-") }
            json.digits(year.magnitude, width: 4)
        }
        json.ascii(capacity: 24) { text in
            if (0...9999).contains(year) { text.digits(year, width: 4) }
            text.put("-")
            text.digits(month, width: 2)
            text.put("-")
            text.digits(day, width: 2)
            text.put("T")
            text.digits(millisecondOfDay / 3_600_000, width: 2)
            text.put(":")
            text.digits(millisecondOfDay / 60_000 % 60, width: 2)
            text.put(":")
            text.digits(millisecondOfDay / 1000 % 60, width: 2)
            text.put(".")
            text.digits(millisecondOfDay % 1000, width: 3)
            text.put("Z")
        }
    }

    /// Reads the format of ``description``: years 0001 to 9999, UTC, exactly three digits of milliseconds.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 24, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"), bytes[19] == UInt8(ascii: "."),
            bytes[23] == UInt8(ascii: "Z")
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[range] {
                guard byte >= 48, byte <= 57 else { return nil }
                value = value * 10 + Int64(byte - 48)
            }
            return value
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), let millisecond = number(20..<23),
            year >= 1, (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 60
        else { return nil }
        let days = Self.days(fromYear: year, month: month, day: day)
        guard Self.civil(fromDays: days) == (year, month, day) else { return nil }
        milliseconds = days * 86_400_000 + hour * 3_600_000 + minute * 60_000 + second * 1000 + millisecond
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let timestamp = Timestamp(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "must be a time like 2026-03-01T12:30:05.250Z")
        }
        self = timestamp
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    public static var schema: Schema { .string(format: "date-time") }
    public static var schemaExample: Self { Timestamp(milliseconds: 1_772_368_205_250) }

    // The proleptic Gregorian calendar by integer arithmetic: eras of 400 years that begin on March 1.
    private static func days(fromYear year: Int64, month: Int64, day: Int64) -> Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = floorDivide(shiftedYear, 400)
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}

extension Timestamp: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.raw("\"")
        write(digits: &json)
        json.raw("\"")
    }
}

private func floorDivide(_ dividend: Int64, _ divisor: Int64) -> Int64 {
    dividend / divisor - (dividend % divisor < 0 ? 1 : 0)
}
