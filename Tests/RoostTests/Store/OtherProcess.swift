import Foundation
import Testing

/// Opens the lock of a user's files as another process would. Returns nil if it isn't free.
func takeLock(of folder: URL) throws -> Int32? {
    let descriptor = open(folder.appending(component: "lock").path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
    close(descriptor)
    return nil
}
