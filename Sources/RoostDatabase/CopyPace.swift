import CPageVFS
import Foundation
import GRDBSQLite

/// The pauses of a copy of a database that a server goes on using: in between, the disk is the server's.
public struct CopyPace: Sendable {
    /// What a copy pauses in.
    package enum Part: Sendable {
        case copying, reading, checking
    }

    /// After 128 KiB that were copied: 32 MB a second at most.
    private static let copyingPause: Duration = .milliseconds(4)
    /// After 32 KiB that were read: 64 MB a second at most.
    private static let readingPauseMin: Duration = .microseconds(500)
    /// A shorter sleep takes much longer than it is asked for.
    fileprivate static let checkingPauseMin: Duration = .microseconds(500)

    private let sleep: @Sendable (Part, Duration) -> Void

    /// - Parameter sleep: Tests have one that counts.
    package init(sleep: @escaping @Sendable (Part, Duration) -> Void) { self.sleep = sleep }

    /// That of a server.
    public static let besideServer = CopyPace { _, time in Thread.sleep(forTimeInterval: time / .seconds(1)) }

    func pauseInCopying() { sleep(.copying, Self.copyingPause) }

    /// - Parameter time: That of the reading, which the pause is as long as.
    func pauseInReading(after time: Duration) { sleep(.reading, max(Self.readingPauseMin, time)) }

    /// - Parameter time: That of the reading, which the pause is as long as.
    fileprivate func pauseInChecking(after time: Duration) { sleep(.checking, time) }
}

/// The pauses of a connection that checks a copy. One thread at a time uses it.
///
/// SQLite reads a page again whenever it needs one that its cache hasn't kept, and most of these reads are answered by the system's memory. So each pause is as long
/// as the reading before it took, however many pages that was: the reading takes twice as long at most, and half of the time the disk is free.
final class CheckPauses {
    private let pace: CopyPace
    private var time: Duration = .zero

    private init(_ pace: CopyPace) { self.pace = pace }

    /// Runs a body, in which a connection pauses while it reads its main file.
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
