import CPageVFS
import Foundation
import GRDBSQLite

/// The pauses in copying a database that a server keeps using: they leave the disk to the server.
public struct CopyPace: Sendable {
    /// The part of a copy that pauses.
    package enum Part: Sendable {
        case copying, reading, checking
    }

    /// After every 128 KiB copied: at most 32 MB a second.
    private static let copyingPause: Duration = .milliseconds(4)
    /// After every 32 KiB read: at most 64 MB a second.
    private static let readingPauseMin: Duration = .microseconds(500)
    /// A shorter sleep takes much longer than requested.
    fileprivate static let checkingPauseMin: Duration = .microseconds(500)

    private let sleep: @Sendable (Part, Duration) -> Void

    /// - Parameter sleep: Tests pass one that counts.
    package init(sleep: @escaping @Sendable (Part, Duration) -> Void) { self.sleep = sleep }

    /// The pauses beside a running server.
    public static let whileServing = CopyPace { _, time in Thread.sleep(forTimeInterval: time / .seconds(1)) }

    func pauseInCopying() { sleep(.copying, Self.copyingPause) }

    /// - Parameter time: How long the reading took; the pause is as long.
    func pauseInReading(after time: Duration) { sleep(.reading, max(Self.readingPauseMin, time)) }

    /// - Parameter time: How long the reading took; the pause is as long.
    fileprivate func pauseInChecking(after time: Duration) { sleep(.checking, time) }
}

/// The pauses of a connection that checks a copy. One thread at a time uses it.
///
/// SQLite rereads a page whenever it needs one that its cache hasn't kept, and most of these reads are served from the system's memory. So each pause
/// is as long as the reading before it, however many pages that was: checking takes at most twice as long, and the disk is free half of the time.
final class CheckPauses {
    private let pace: CopyPace
    private var time: Duration = .zero

    private init(_ pace: CopyPace) { self.pace = pace }

    /// Runs a body during which a connection pauses while it reads its main file.
    ///
    /// - Parameter pace: Nil for no pauses.
    static func taken<T>(by connection: OpaquePointer?, _ pace: CopyPace?, _ body: () throws -> T) throws -> T {
        guard let pace else { return try body() }
        let pauses = CheckPauses(pace)
        guard pauses.begin(on: connection) == SQLITE_OK else { throw SQLiteDatabase.failure(connection) }
        defer {
            roost_note_reads(connection, nil, nil)
            withExtendedLifetime(pauses) {}
        }
        return try body()
    }

    /// - Returns: SQLite's code.
    private func begin(on connection: OpaquePointer?) -> Int32 {
        roost_note_reads(
            connection,
            { context, nanoseconds in
                guard let context else { return }
                Unmanaged<CheckPauses>.fromOpaque(context).takeUnretainedValue().note(.nanoseconds(nanoseconds))
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func note(_ reading: Duration) {
        time += reading
        guard time >= CopyPace.checkingPauseMin else { return }
        pace.pauseInChecking(after: time)
        time = .zero
    }
}
