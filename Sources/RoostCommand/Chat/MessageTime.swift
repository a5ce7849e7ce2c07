import Foundation
import Roost

/// Times of messages as people read them, in their own time zone.
enum MessageTime {
    /// `09:05`
    static func minute(of date: Date, in calendar: Calendar = .current) -> String {
        let parts = calendar.dateComponents([.hour, .minute], from: date)
        return twoDigits(parts.hour ?? 0) + ":" + twoDigits(parts.minute ?? 0)
    }

    /// `Monday, March 2, 2026`
    static func day(of date: Date, in calendar: Calendar = .current) -> String {
        var style = Date.FormatStyle(date: .complete, time: .omitted)
        style.timeZone = calendar.timeZone
        return style.format(date)
    }

    private static func twoDigits(_ number: Int) -> String { (number < 10 ? "0" : "") + String(number) }
}

extension Timestamp {
    var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
}
