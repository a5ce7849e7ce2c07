import Foundation

/// The system's error inside one of Foundation's, whose own text is for programmers: it has a domain, a code and a dictionary.
package enum SystemError {
    /// The error number, as `ENOSPC`; nil for an error that didn't come from the system.
    package static func code(of error: any Error) -> Int32? {
        ((error as NSError).userInfo[NSUnderlyingErrorKey] as? POSIXError)?.code.rawValue
    }

    /// The system's message: "Permission denied".
    package static func reason(of error: any Error) -> String {
        code(of: error).map { String(cString: strerror($0)) } ?? error.localizedDescription
    }
}
