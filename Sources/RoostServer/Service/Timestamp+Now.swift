import Foundation
import RoostAPI

extension Timestamp {
    /// The system clock.
    static var now: Timestamp { Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down))) }
}
