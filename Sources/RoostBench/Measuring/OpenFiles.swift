import Foundation

/// The limit on open files.
enum OpenFiles {
    #if os(Linux)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    private static let resource = RLIMIT_NOFILE
    #endif

    /// Raises the limit of this process, and of child processes that inherit it, to the system's maximum.
    static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }

    /// Throws if the limit is too low for some sockets and a few other files.
    static func require(sockets: Int) throws {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, UInt64(limit.rlim_cur) < UInt64(sockets + 100) else { return }
        throw BenchFailure("\(sockets) sockets need \(sockets + 100) open files, and the limit is \(limit.rlim_cur) (ulimit -Hn)")
    }
}
