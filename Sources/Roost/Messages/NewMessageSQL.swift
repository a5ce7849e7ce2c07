import GRDB
import RoostAPI

/// The SQL with which a cache stores a new message: one statement for each of the three rows that it changes. The floor of the benchmark runs the same.
package enum NewMessageSQL {
    /// The pragmas of the connection that writes the cache.
    package static let pragmas = DatabaseFile.pragmas(isDurable: false)
    /// Stores the message. Its parameters are the columns of `messages`, in their order.
    package static let message = Message.upsert
    /// Adds the message to the channel's counters. Its parameters are the message's seq, whether it counts, its time, the channel and `Int.max`.
    package static let counters = Database.additionToCounters
    /// Moves the channel's position. Its parameters are the channel, the message's seq, the position's count of messages, whether it has a hole,
    /// whether it has ended, and the store that follows the channel, NULL for none.
    package static let position = Database.advanceOfPosition
}
