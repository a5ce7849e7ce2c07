public import Foundation

extension Timestamp {
    /// The same moment as a `Date`.
    public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// A date, rounded down to the millisecond. A date out of range becomes the first or last timestamp.
    public init(_ date: Date) {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded(.down)
        self.init(milliseconds: Int64(exactly: milliseconds) ?? (milliseconds > 0 ? .max : .min))
    }

    /// The machine's clock.
    package static var now: Timestamp { Timestamp(Date()) }

    /// The timestamp after a duration.
    package func adding(_ duration: Duration) -> Timestamp { Timestamp(date.addingTimeInterval(duration / .seconds(1))) }
}
