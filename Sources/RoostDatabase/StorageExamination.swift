import CPageVFS
import Foundation

/// Examines the files of a data directory before SQLite opens them: whether they belong together, and whether each of them is whole.
///
/// SQLite silently ignores a missing log, stops at the first damaged frame of a log, and treats an empty file as a new database. The files left by a
/// kill at any moment or by a power cut pass here; see docs/decisions/0031.
struct StorageExamination {
    let files: DataFiles
    let acceptsDataLoss: Bool
    /// The losses that the server accepted because of `--accept-data-loss`.
    private(set) var losses: [String] = []
    /// The log can't be applied to the current database.
    private(set) var setsLogAside = false
    /// The whole log is in the database. It must not be read: if its end is missing, it would replace newer pages by older ones.
    private(set) var removesLog = false
    private(set) var state: StorageState
    /// The state as found; nil if it is missing or damaged.
    private(set) var known: StorageState?
    /// Whether the database existed before.
    private(set) var isKnown = false

    /// - Throws: ``DamagedFiles``; ``DatabaseFailure`` if the log can't be read, or if a newer version has written the state, whose losses this one can't
    ///   judge.
    init(files: DataFiles, acceptsDataLoss: Bool) throws {
        self.files = files
        self.acceptsDataLoss = acceptsDataLoss
        state = StorageState(server: UUID().uuidString.lowercased(), lineage: UUID().uuidString.lowercased())
        let hasDatabase = (DataFiles.size(of: files.database) ?? 0) > 0
        let log = try Self.log(files.log)
        switch StateFile.read(path: files.state) {
        case .state(let known):
            self.known = known
            state = known
            try examine(hasDatabase: hasDatabase, log)
        case .damaged:
            try refuse("\(files.state) is damaged, so it is unknown whether the other files are complete.")
            if hasDatabase { try examineHeader() } else { setsLogAside = log.state != 0 }
        case .newer:
            throw DatabaseFailure(
                message: "\(files.state) was written by a newer version of Roost. Start that version.", kind: .fatal)
        case .missing:
            try examineWithoutState(hasDatabase: hasDatabase, log)
        }
        if !setsLogAside, !removesLog { try examine(log) }
    }

    /// Records a loss, or refuses it.
    mutating func refuse(_ found: String) throws {
        guard acceptsDataLoss else { throw DamagedFiles(found) }
        losses.append(found)
    }

    private static func log(_ path: String) throws -> roost_log_report {
        var report = roost_log_report()
        let code = roost_examine_log(path, &report)
        guard code == 0 else {
            throw DatabaseFailure(message: "Can't read \(path): \(String(cString: strerror(code))).", kind: .fatal)
        }
        return report
    }

    // MARK: The database file

    private mutating func examineWithoutState(hasDatabase: Bool, _ log: roost_log_report) throws {
        if hasDatabase {
            try examineHeader()
            // Version 0.1 had no such file, and didn't mark its databases.
            guard let header = DatabaseHeader(path: files.database), header.applicationID != 0 else { return }
            try refuse(
                "\(files.state) is missing next to a database, so it is unknown whether the database is the newest one.")
        } else {
            try examineMissingDatabase(log)
        }
    }

    /// Examines a missing database. A server creates its secret once it has its database.
    private mutating func examineMissingDatabase(_ log: roost_log_report) throws {
        guard FileManager.default.fileExists(atPath: files.secret) || log.state > 1 else { return }
        let rest = log.state > 1 ? files.log : files.secret
        try refuse("\(files.database) is missing or empty next to \(rest): a server has used this directory before.")
        setsLogAside = log.state != 0
    }

    /// Checks that the file looks like a database of Roost.
    private mutating func examineHeader() throws {
        isKnown = true
        guard let header = DatabaseHeader(path: files.database), header.isSQLite else {
            throw DamagedFiles("\(files.database) isn't a database: its header is damaged.", canBeAccepted: false)
        }
        // Any other size would be another program's, and checksums are computed for this one.
        guard header.pageSize == Int(DatabaseHeader.pageSizeBytes) else {
            throw DamagedFiles(
                "\(files.database) is damaged: its header gives a page size of \(header.pageSize).", canBeAccepted: false)
        }
        // A file from before the checksums is converted; any other number would turn them off.
        guard header.hasChecksums || (header.reservedBytes == 0 && header.applicationID == 0) else {
            throw DamagedFiles("\(files.database) is damaged: its header no longer has checksums.", canBeAccepted: false)
        }
    }

    private mutating func examine(hasDatabase: Bool, _ log: roost_log_report) throws {
        if state.phase == .new { return try hasDatabase ? examineFirst(log) : examineMissingDatabase(log) }
        guard hasDatabase else {
            try refuse("\(files.database) is missing or empty, and \(files.state) says that a server has used this directory.")
            (isKnown, setsLogAside) = (false, log.state != 0)
            state = StorageState(server: state.server, lineage: state.lineage, sequence: state.sequence)
            return
        }
        try examineHeader()
        guard let header = DatabaseHeader(path: files.database) else { return }
        guard state.applicationIDs.contains(header.applicationID) else { return try refuseDifferentServer(log) }
        guard header.generation >= state.generation else {
            try refuse(
                "\(files.database) is an older copy: it has checkpoint \(header.generation), but \(state.generation) were completed."
            )
            setsLogAside = log.state != 0
            return
        }
        try examinePhase(header, log)
    }

    /// Examines a database next to the state of a first start. Either the server was killed during that: it made all the existing files, and nothing
    /// was acknowledged yet. Or the files are from before there were such states, or from before an accepted loss. A database that was marked for
    /// another server was put there since.
    private mutating func examineFirst(_ log: roost_log_report) throws {
        try examineHeader()
        guard state.nextLineage == nil, let header = DatabaseHeader(path: files.database), header.applicationID != 0,
            !state.applicationIDs.contains(header.applicationID)
        else { return }
        try refuseDifferentServer(log)
    }

    private mutating func refuseDifferentServer(_ log: roost_log_report) throws {
        try refuse(
            "\(files.database) belongs to a different server than \(files.state), or is from before data was lost or restored.")
        setsLogAside = log.state != 0
    }

    private mutating func examinePhase(_ header: DatabaseHeader, _ log: roost_log_report) throws {
        let size = DataFiles.size(of: files.database) ?? 0
        switch state.phase {
        case .new: break
        case .closed:
            guard header.generation == state.generation else {
                throw DamagedFiles("\(files.database) and \(files.state) don't belong together.", canBeAccepted: false)
            }
            // The log that was last written into the database reappears if the machine fails before its removal is on disk.
            removesLog = log.state == 3 && state.pastSalts == Self.salts(of: log)
            guard log.state < 2 || removesLog else {
                try refuse(
                    "\(files.log) is older than \(files.database): the server had written it into the database when it stopped.")
                setsLogAside = true
                return
            }
            guard size == header.pageCount * DatabaseHeader.pageSizeBytes else {
                throw DamagedFiles(
                    "\(files.database) has \(size) bytes where its header says \(header.pageCount) pages: it was cut off.",
                    canBeAccepted: false)
            }
        case .open:
            guard log.state > 0 else {
                try refuse("\(files.log) is missing, and the server was killed: its content isn't in \(files.database) yet.")
                return
            }
            // The log only restarts after a checkpoint, which the database records. A number higher than the state's may also be from an incomplete
            // try: a log that hasn't restarted still has its frames.
            guard header.generation == state.generation else {
                if let known = state.logSalts, log.state == 3, Self.salts(of: log) == known { try examineFrames(log) }
                return
            }
            guard let known = state.logSalts else { return try examinePast(log) }
            guard log.state == 3, Self.salts(of: log) == known else {
                try refuse("\(files.log) isn't the one that the server wrote last, or its header is damaged.")
                setsLogAside = log.state == 3
                return
            }
            try examineFrames(log)
        }
    }

    /// Checks that what was on disk when the state was written still is.
    private mutating func examineFrames(_ log: roost_log_report) throws {
        guard log.committed_frames >= state.logFrames else {
            return try refuse(
                "\(files.log) ends after frame \(log.committed_frames), and \(state.logFrames) were on disk: what is missing was acknowledged."
            )
        }
    }

    /// After a checkpoint there may be the log that it has written into the database, none, or the next one, whose first salt is one higher.
    private mutating func examinePast(_ log: roost_log_report) throws {
        guard let past = state.pastSalts, log.state == 3 else { return }
        let first = UInt32(truncatingIfNeeded: past >> 32)
        guard Self.salts(of: log) == past || (1...2).contains(log.salts.0 &- first) else {
            try refuse("\(files.log) isn't the one that the server wrote last.")
            setsLogAside = true
            return
        }
    }

    // MARK: The log

    private static func salts(of log: roost_log_report) -> UInt64 { UInt64(log.salts.0) << 32 | UInt64(log.salts.1) }

    /// A transaction is written after the one before it is on disk. So a failing machine tears at most the last one, and any other mismatch is later
    /// damage.
    private mutating func examine(_ log: roost_log_report) throws {
        if log.state == 2 { return try refuse("\(files.log) is damaged: its header doesn't match its checksum.") }
        let committed = log.commits_behind + (log.has_frames_behind != 0 ? 1 : 0)
        guard log.state == 3, committed > 1 else { return }
        try refuse(
            "\(files.log) is damaged after frame \(log.committed_frames): at least \(committed - 1) transactions after it would be lost."
        )
    }
}
