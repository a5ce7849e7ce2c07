import CPageVFS
import Foundation

/// Reads all pages of a database file, bypassing SQLite, and compares them with their checksums.
struct PageReading {
    let pages: Int64
    let firstDamaged: Int64?
    /// A checksum of 64 bits over all pages, in hexadecimal.
    let checksum: String

    /// - Parameter pace: Pauses after every 32 KiB; nil for none. With it nothing is read ahead, so others that use the same disk wait for at most
    ///   that much.
    /// - Throws: ``DatabaseFailure`` if the file can't be read.
    init(of path: String, pace: CopyPace? = nil) throws {
        func failure(_ code: Int32) -> DatabaseFailure {
            DatabaseFailure(message: "Can't read \(path): \(String(cString: strerror(code))).", kind: .fatal)
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(errno) }
        defer { close(descriptor) }
        if pace != nil { roost_read_nothing_ahead(descriptor) }
        var report = roost_page_report()
        var result: Int32 = 0
        repeat {
            let time = ContinuousClock().measure { result = roost_read_pages(descriptor, &report) }
            if result == 1 { pace?.pauseInReading(after: time) }
        } while result == 1
        guard result == 0 else { throw failure(-result) }
        pages = report.pages
        firstDamaged = report.first_damaged == 0 ? nil : report.first_damaged
        checksum = String(report.checksum, radix: 16)
    }
}
