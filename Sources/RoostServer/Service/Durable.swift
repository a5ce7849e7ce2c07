import Foundation
import RoostDatabase

/// Files that are on disk when the call returns, and the reading of others. Failures are the system's errors, as Foundation has them.
enum Durable {
    /// Writes a new file. From its first byte on only its owner may open it: the content may be a secret.
    ///
    /// - Throws: The system's error; also if there is a file of this name.
    static func write(_ data: Data, to url: URL) throws {
        try make(url) { descriptor in
            try data.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in try write(bytes, to: descriptor) }
        }
    }

    /// Copies a file to a new one that only its owner may open.
    ///
    /// - Throws: The system's error, also if there is a file of this name; ``Backup/Unusable`` if the other one can't be read.
    static func copy(_ source: URL, to url: URL) throws {
        let sourceDescriptor = open(source.path, O_RDONLY | O_CLOEXEC)
        guard sourceDescriptor >= 0 else { throw Backup.Unusable(reading: source.path, failure(errno)) }
        defer { close(sourceDescriptor) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        try make(url) { descriptor in
            while true {
                let count = buffer.withUnsafeMutableBytes { Foundation.read(sourceDescriptor, $0.baseAddress, $0.count) }
                guard count >= 0 else { throw Backup.Unusable(reading: source.path, failure(errno)) }
                guard count > 0 else { return }
                try buffer.withUnsafeBytes { try write(UnsafeRawBufferPointer(rebasing: $0[..<count]), to: descriptor) }
            }
        }
    }

    /// Reads all of a file, which may be a pipe.
    static func read(_ url: URL) throws -> Data {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(errno) }
        defer { close(descriptor) }
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = buffer.withUnsafeMutableBytes { Foundation.read(descriptor, $0.baseAddress, $0.count) }
            guard count >= 0 else { throw failure(errno) }
            guard count > 0 else { return data }
            data.append(contentsOf: buffer[..<count])
        }
    }

    /// Makes a new file and fills it; removes it if it can't be filled.
    private static func make(_ url: URL, _ fill: (_ descriptor: Int32) throws -> Void) throws {
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(errno) }
        defer { close(descriptor) }
        do {
            try fill(descriptor)
            guard FileSync.sync(descriptor, url.path) else { throw failure(errno) }
        } catch {
            unlink(url.path)
            throw error
        }
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws {
        var rest = bytes
        while let start = rest.baseAddress, !rest.isEmpty {
            let count = Foundation.write(descriptor, start, rest.count)
            guard count > 0 else { throw failure(errno) }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    private static func failure(_ code: Int32) -> CocoaError {
        CocoaError(.fileWriteUnknown, userInfo: [NSUnderlyingErrorKey: POSIXError(POSIXError.Code(rawValue: code) ?? .EIO)])
    }

    static func syncIfExists(_ url: URL) throws {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0, errno == ENOENT { return }
        defer { close(descriptor) }
        guard descriptor >= 0, FileSync.sync(descriptor, url.path) else {
            throw Backup.Unusable("\(url.path) can't be flushed to disk: \(String(cString: strerror(errno))).")
        }
    }
}
