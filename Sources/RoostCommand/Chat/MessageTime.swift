import Foundation
import Roost
import RoostAPI

/// Times of messages in readable form, in the user's time zone.
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

    /// `2026-03-02 09:05`
    static func moment(of date: Date, in calendar: Calendar = .current) -> String {
        let parts = calendar.dateComponents([.year, .month, .day], from: date)
        let day = [parts.year ?? 0, parts.month ?? 0, parts.day ?? 0].map(twoDigits).joined(separator: "-")
        return day + " " + minute(of: date, in: calendar)
    }

    private static func twoDigits(_ number: Int) -> String { (number < 10 ? "0" : "") + String(number) }
}
