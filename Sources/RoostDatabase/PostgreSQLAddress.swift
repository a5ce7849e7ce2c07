#if Cluster
import CPostgres
import Foundation

/// A server's address and connection options, as libpq parses them from a URL, with Roost's defaults for options that the URL leaves out.
///
/// A URL contains a password, and a malformed one contains it in an unexpected place. So no text of this type repeats a part of the URL.
struct PostgreSQLAddress: Sendable {
    private let parameters: [String: String]

    /// - Throws: A fatal ``DatabaseFailure`` that names the problem, if it isn't the URL of a PostgreSQL database.
    init(url: String) throws {
        guard url.hasPrefix("postgres://") || url.hasPrefix("postgresql://") else {
            throw Self.wrong("it must begin with postgres:// or postgresql://")
        }
        var given = try Self.parse(url)
        try Self.check(given)
        // libpq takes the last of two equal options, and text in another encoding would be stored as different text.
        given["client_encoding"] = "UTF8"
        parameters = Self.standard.merging(given) { _, given in given }
    }

    /// The defaults for options that the URL leaves out.
    private static let standard = [
        "fallback_application_name": "roost",
        "connect_timeout": "5",
        // A machine that has vanished is noticed after about ten seconds, even while an answer is awaited.
        "keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3", "tcp_user_timeout": "10000",
        // Of several servers, the writable one: after a failover that is a different one.
        "target_session_attrs": "read-write",
    ]

    private static func parse(_ url: String) throws -> [String: String] {
        var problem: UnsafeMutablePointer<CChar>?
        defer { PQfreemem(problem) }
        guard let options = PQconninfoParse(url, &problem) else {
            throw wrong(problem.map { unquoted(String(cString: $0)) } ?? "it can't be read")
        }
        defer { PQconninfoFree(options) }
        var given: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { given[String(cString: keyword)] = String(cString: value) }
            option = option.successor()
        }
        return given
    }

    /// Detects a password that was parsed as something else because it contains an unencoded character with a meaning in URLs. libpq's error for such
    /// a URL would repeat it.
    private static func check(_ given: [String: String]) throws {
        let ports = given["port"]?.split(separator: ",", omittingEmptySubsequences: true) ?? []
        guard ports.allSatisfy({ (UInt16($0) ?? 0) > 0 }) else {
            throw wrong("the port isn't a number from 1 to 65535; is there a / in the password? It is written %2F")
        }
        guard given["host"]?.contains("@") != true, given["dbname"]?.contains("@") != true else {
            throw wrong("there is more than one @; in a user name or password it is written %40")
        }
    }

    private static func wrong(_ problem: String) -> DatabaseFailure {
        DatabaseFailure(message: "The database's URL can't be used: \(problem).", kind: .fatal)
    }

    /// An error text of libpq without its quote from the URL: from the first quotation mark to the last.
    private static func unquoted(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isNewline).joined(separator: " ")
        guard let first = line.firstIndex(of: "\""), let last = line.lastIndex(of: "\"") else { return line }
        return (line[..<first] + "…" + line[line.index(after: last)...]).trimmingCharacters(in: CharacterSet(charactersIn: " :…"))
    }

    /// A text from libpq or the server on one line, without the password.
    func redacted(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isNewline).joined(separator: " ")
        guard let password = parameters["password"], !password.isEmpty else { return line }
        return line.replacingOccurrences(of: password, with: "…")
    }

    /// Connects, and waits until that succeeds or fails. The handle has to be finished even if it failed; nil means out of memory.
    func connect() -> OpaquePointer? {
        var keywords: [UnsafeMutablePointer<CChar>?] = []
        var values: [UnsafeMutablePointer<CChar>?] = []
        defer { for text in keywords + values { free(text) } }
        for (keyword, value) in parameters {
            keywords.append(strdup(keyword))
            values.append(strdup(value))
        }
        let constantKeywords = (keywords + [nil]).map { UnsafePointer($0) }
        let constantValues = (values + [nil]).map { UnsafePointer($0) }
        return PQconnectdbParams(constantKeywords, constantValues, 0)
    }
}
#endif
