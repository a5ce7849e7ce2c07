public import Foundation
public import RoostAPI

extension Timestamp {
    /// The moment as Foundation has it.
    public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// The moment to the millisecond, rounded down; the first or last one that there is for a date beyond these.
    public init(_ date: Date) {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded(.down)
        self.init(milliseconds: Int64(exactly: milliseconds) ?? (milliseconds > 0 ? .max : .min))
    }

    /// The moment a while later.
    func adding(_ duration: Duration) -> Timestamp { Timestamp(date.addingTimeInterval(duration / .seconds(1))) }
}
