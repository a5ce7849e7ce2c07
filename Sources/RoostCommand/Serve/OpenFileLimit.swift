import Foundation
import Logging

/// The limit on open files: each connection is one.
enum OpenFileLimit {
    /// Files that a server has open besides its connections: databases, logs, threads' pipes.
    static let reserve = 300

    #if canImport(Glibc)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    private static let resource = RLIMIT_NOFILE
    #endif

    /// The process's current limit on open files, and the limit to which it may raise it.
    static var current: (soft: Int, hard: Int) {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return (0, 0) }
        return (Int(clamping: limit.rlim_cur), Int(clamping: limit.rlim_max))
    }

    /// Raises the limit as far as this process may: the soft limit is a relic of programs that used `select`.
    ///
    /// - Returns: The possible number of connections, at most the requested one.
    static func raise(for connectionsMax: Int, logger: Logger) -> Int {
        var limit = rlimit()
        if getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            setrlimit(resource, &limit)
        }
        let openFilesMax = current.soft
        if openFilesMax < connectionsMax + reserve {
            let possible = max(1, openFilesMax - reserve)
            logger.warning(
                """
                The limit on open files (\(openFilesMax)) is too low for connections-max (\(connectionsMax)): only \(possible) are accepted. \
                Raise it with ulimit -n.
                """)
            return possible
        }
        return connectionsMax
    }
}
