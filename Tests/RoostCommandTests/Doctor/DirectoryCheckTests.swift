import Foundation
import Testing

@testable import RoostCommand

/// What is said about a directory that can't be written.
@Suite struct DirectoryCheckTests {
    private let directory = URL(filePath: "/data", directoryHint: .isDirectory)
    private let codes = [EACCES, EPERM, ENOSPC, EDQUOT, EROFS, EIO]

    private let advice = [
        "Free some space: a full disk stops all writes", "Free some space: a full disk stops all writes",
        "Mount the file system so that it can be written, or name another directory with --data",
        "Check the disk, or name another directory with --data",
    ]

    private func reasons() -> [String] { codes.map { String(cString: strerror($0)) } }

    @Test("a disk that can't be measured is reported with the system's reason, and permissions only if they are the reason")
    func unmeasured() {
        let findings = codes.map { DiskSync.unmeasured(in: directory, $0) }
        #expect(findings.map(\.found) == reasons().map { "can't be measured in /data: \($0)" })
        let permission = "Make the directory writable for this user"
        #expect(findings.map { $0.advice ?? "" } == [permission, permission] + advice)
        let missing = DiskSync.finding(in: URL(filePath: "/nowhere/roost-data", directoryHint: .isDirectory))
        #expect(missing.result == .fail && missing.found.hasSuffix(": No such file or directory"))
    }

    @Test("so is a data directory that can't be written, as on a read-only file system")
    func inaccessible() {
        let findings = codes.map { DirectoryChecks.inaccessible("/data", $0) }
        #expect(findings.map(\.found) == reasons().map { "/data can't be read and written: \($0)" })
        let permission = "Run as its owner, or chown it"
        #expect(findings.map { $0.advice ?? "" } == [permission, permission] + advice)
    }
}
