import Foundation
import Synchronization

/// The time as a `Date` header has it (RFC 9110 §5.6.7), formatted once a second.
final class HTTPDate: Sendable {
    private let last = Mutex<(second: Int, text: String)>((0, ""))

    var text: String {
        let second = Int(Date().timeIntervalSince1970)
        return last.withLock { last in
            if last.second != second { last = (second, Self.text(of: second)) }
            return last.text
        }
    }

    static func text(of second: Int) -> String {
        var time = time_t(second)
        var parts = tm()
        gmtime_r(&time, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = days[Int(parts.tm_wday) % 7]
        let month = months[Int(parts.tm_mon) % 12]
        return "\(day), \(two(parts.tm_mday)) \(month) \(parts.tm_year + 1900) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
