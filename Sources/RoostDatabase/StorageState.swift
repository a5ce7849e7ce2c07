import CPageVFS
import Foundation

/// The facts in `roost.state` about the other files of a data directory, by which a start notices that one of them is missing, older or another
/// server's.
///
/// Everything in it is a lower bound of what is on disk: it is written after that, never before. So it can lag behind, by a second or by what a power
/// cut loses, which is no sign of damage; the other files can't lag behind it.
struct StorageState: Equatable {
    enum Phase: String {
        /// The first start hasn't finished.
        case new
        /// A server is running, or ended without closing the database.
        case open
        /// The log was written into the database file, and nothing has been written since.
        case closed
    }

    /// The server whose files these are.
    var server: String
    /// Changes when data loss is accepted, and when a backup is restored: older files don't belong to newer ones.
    var lineage: String
    /// The lineage that the database is being given, or already has.
    var nextLineage: String?
    var phase = Phase.new
    /// The number of completed checkpoints: the database file holds this number or a higher one.
    var generation: UInt32 = 0
    /// The salts of the log; nil while it is empty or unknown. SQLite takes new ones each time it restarts the log.
    var logSalts: UInt64?
    /// The salts of the log that the last complete checkpoint wrote into the database, until those of the next log are known.
    var pastSalts: UInt64?
    /// The number of frames of the current log known to be on disk.
    var logFrames: Int64 = 0
    /// Increases with each write of the file.
    var sequence: Int64 = 0

    /// The number in the header of the database file, by which a file of another server or another lineage is recognised before it is opened.
    var applicationID: Int32 { Self.applicationID(server: server, lineage: lineage) }

    /// The numbers that the database file may have.
    var applicationIDs: [Int32] {
        [applicationID] + (nextLineage.map { [Self.applicationID(server: server, lineage: $0)] } ?? [])
    }

    private static func applicationID(server: String, lineage: String) -> Int32 {
        let bytes = Array("\(server) \(lineage)".utf8)
        let sum = bytes.withUnsafeBytes { roost_checksum($0.baseAddress, $0.count, 0) }
        // Never 0, the value in a database that wasn't marked.
        return Int32(bitPattern: UInt32(truncatingIfNeeded: sum) | 1)
    }
}

extension StorageState {
    private static let titleOfAnyVersion = "Roost's storage state, version "
    private static let title = titleOfAnyVersion + "1"

    /// The state as the lines of one slot, ending with a checksum.
    var slot: [UInt8] {
        var text = """
            \(Self.title)
            server \(server)
            lineage \(lineage)
            next \(nextLineage ?? "none")
            phase \(phase.rawValue)
            generation \(generation)
            salts \(logSalts.map { String($0) } ?? "none")
            past \(pastSalts.map { String($0) } ?? "none")
            frames \(logFrames)
            sequence \(sequence)

            """
        text += "checksum \(Self.checksum(of: text))\n"
        var bytes = Array(text.utf8)
        bytes += [UInt8](repeating: UInt8(ascii: "\n"), count: max(0, StateFile.slotSizeBytes - bytes.count))
        return bytes
    }

    /// The text of a slot up to its checksum; nil if the slot isn't whole.
    private static func text(of slot: [UInt8]) -> Substring? {
        let text = String(decoding: slot, as: UTF8.self)
        guard let end = text.range(of: "checksum ") else { return nil }
        let given = text[end.upperBound...].prefix { !$0.isNewline }
        guard given == checksum(of: String(text[..<end.lowerBound])),
            text[end.upperBound...].dropFirst(given.count).allSatisfy({ $0 == "\n" })
        else { return nil }
        return text[..<end.lowerBound]
    }

    /// Whether a slot is whole and has another version in its title. That is a newer version, since this one is the first.
    static func isNewer(slot: [UInt8]) -> Bool {
        guard let found = text(of: slot) else { return false }
        return found.hasPrefix(titleOfAnyVersion) && !found.hasPrefix("\(title)\n")
    }

    /// Nil if the slot isn't whole, or is a newer version's.
    init?(slot: [UInt8]) {
        guard let text = Self.text(of: slot), text.hasPrefix("\(Self.title)\n") else { return nil }
        var values: [Substring: Substring] = [:]
        for line in text.split(separator: "\n").dropFirst() {
            let parts = line.split(separator: " ", maxSplits: 1)
            if parts.count == 2 { values[parts[0]] = parts[1] }
        }
        guard let server = values["server"], let lineage = values["lineage"],
            let phase = values["phase"].flatMap({ Phase(rawValue: String($0)) }),
            let generation = values["generation"].flatMap({ UInt32($0) }), let frames = values["frames"].flatMap({ Int64($0) }),
            let sequence = values["sequence"].flatMap({ Int64($0) })
        else { return nil }
        self.init(
            server: String(server), lineage: String(lineage),
            nextLineage: values["next"].flatMap { $0 == "none" ? nil : String($0) }, phase: phase, generation: generation,
            logSalts: values["salts"].flatMap { UInt64($0) }, pastSalts: values["past"].flatMap { UInt64($0) }, logFrames: frames,
            sequence: sequence)
    }

    private static func checksum(of text: String) -> String {
        let bytes = Array(text.utf8)
        return String(bytes.withUnsafeBytes { roost_checksum($0.baseAddress, $0.count, 1) }, radix: 16)
    }
}

/// The file `roost.state`: two slots, written alternately, so one is whole whenever the machine fails.
final class StateFile: Sendable {
    /// Writes bytes at a position of an open file. Returns 0 or an error number.
    typealias Write = @Sendable (_ bytes: [UInt8], _ place: Int, _ descriptor: Int32) -> Int32

    static let slotSizeBytes = 1024
    /// The slots are in separate disk blocks.
    private static let slotPlaces = [0, 4096]

    private let descriptor: Int32
    private let writeBytes: Write
    let path: String

    /// Opens the file, which is created if it doesn't exist.
    ///
    /// - Parameter writeBytes: The system's call unless a test passes another.
    init(path: String, writeBytes: @escaping Write = { StateFile.write($0, at: $1, of: $2) }) throws {
        self.path = path
        self.writeBytes = writeBytes
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DatabaseFailure.system("Can't open \(path)") }
    }

    deinit { close(descriptor) }

    /// The content of the file.
    enum Content: Equatable {
        case missing
        /// The file exists, but no slot of it is whole.
        case damaged
        /// A newer version has written it.
        case newer
        case state(StorageState)
    }

    static func read(path: String) -> Content {
        guard let data = FileManager.default.contents(atPath: path) else {
            return FileManager.default.fileExists(atPath: path) ? .damaged : .missing
        }
        // A first start that was killed before it wrote anything, or whose file system synced the file's length but not its content.
        if data.allSatisfy({ $0 == 0 }) { return .missing }
        let bytes = [UInt8](data)
        let slots = slotPlaces.compactMap { start -> [UInt8]? in
            guard bytes.count >= start + slotSizeBytes else { return nil }
            return Array(bytes[start..<start + slotSizeBytes])
        }
        // A slot of this version beside it is an older state.
        if slots.contains(where: { StorageState.isNewer(slot: $0) }) { return .newer }
        let states = slots.compactMap { StorageState(slot: $0) }
        guard let newest = states.max(by: { $0.sequence < $1.sequence }) else { return .damaged }
        return .state(newest)
    }

    /// Writes the state over the older slot, and waits until it is on disk. If that fails, the other slot is whole: the next try must have the same
    /// `sequence`, which selects the slot.
    func write(_ state: StorageState) throws {
        let slot = state.slot
        var code = slot.count == Self.slotSizeBytes ? writeBytes(slot, Self.slotPlaces[Int(state.sequence & 1)], descriptor) : EFBIG
        if code == 0, !FileSync.syncContent(descriptor, path) { code = errno }
        guard code == 0 else { throw DatabaseFailure.system("Can't write \(path)", code) }
    }

    /// The system call that writes a slot.
    static func write(_ bytes: [UInt8], at place: Int, of descriptor: Int32) -> Int32 {
        let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(place)) }
        // If only a part fits, that part is written.
        guard count == bytes.count else { return count < 0 ? errno : ENOSPC }
        return 0
    }
}

extension DatabaseFailure {
    /// A failed system call, with the message of `errno` or another error number.
    static func system(_ what: String, _ code: Int32 = errno) -> DatabaseFailure {
        DatabaseFailure(
            message: "\(what): \(String(cString: strerror(code))).", kind: .fatal,
            obstacle: code == ENOSPC || code == EDQUOT ? .fullDisk : nil)
    }
}
