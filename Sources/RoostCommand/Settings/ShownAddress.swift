/// The URL of a database or a bus for display, without anything that may be a password, a token or another secret.
///
/// Any other text may hold a secret anywhere, so nothing of it is shown.
enum ShownAddress {
    /// The parameters of libpq without secrets.
    private static let openParameters: Set<Substring> = [
        "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name",
        "gssdelegation", "gssencmode", "gsslib", "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle",
        "keepalives_interval",
        "krbsrvname", "load_balance_hosts", "options", "passfile", "port", "require_auth", "requirepeer", "service", "sslcert",
        "sslcertmode", "sslcompression", "sslcrl", "sslcrldir", "sslkey", "ssl_max_protocol_version", "ssl_min_protocol_version",
        "sslmode", "sslnegotiation", "sslrootcert", "sslsni", "target_session_attrs", "tcp_user_timeout", "user",
    ]

    static func of(_ text: String) -> String {
        guard let scheme = text.prefixMatch(of: /(?:postgres|postgresql|nats|tls):\/{2}/)?.output else { return "…" }
        let query = text.firstIndex(of: "?") ?? text.endIndex
        // Either the @ is in a parameter's password, or the ? in the user's: everything after the scheme may be one.
        guard !text[query...].contains("@") else { return "\(scheme)…" }
        // Any text before the last @ may be one, or a token.
        let server = text[..<query].replacing(/(?s):\/\/.*@/) { _ in "://…@" }
        guard scheme.hasPrefix("postgres") else {
            // A bus has neither a path nor parameters.
            return query == text.endIndex && namesHosts(server, hasPath: false) ? "\(server)" : "\(scheme)…"
        }
        guard namesHosts(server, hasPath: true) else { return "\(scheme)…" }
        return query == text.endIndex ? "\(server)" : "\(server)?\(parameters(text[query...].dropFirst()))"
    }

    /// Whether each host has a port of digits, or none. A password without an @ after it would be in the place of a port.
    private static func namesHosts(_ server: Substring, hasPath: Bool) -> Bool {
        let host = /(?:…@)?(?:\[[^\[\]]*\]|[^:\/\[\]]*)(?::[0-9]{0,5})?(?<path>\/(?s:.*))?/
        return server.split(separator: ",", omittingEmptySubsequences: false).allSatisfy { part in
            guard let match = part.trimmingPrefix(/\s*[a-z]+:\/{2}/).wholeMatch(of: host) else { return false }
            return hasPath || (match.output.path ?? "/") == "/"
        }
    }

    /// Returns the parameters of libpq. An unknown one may be the rest of a secret that contains an &, or have a mistyped name.
    private static func parameters(_ query: Substring) -> String {
        // A name with percent signs may encode a secret's name.
        let secret = /(?:(?i:password|sslpassword|oauth_client_secret|scram_client_key|scram_server_key)\s*|[^=]*%[^=]*)=/
        var shown: [Substring] = []
        for parameter in query.split(separator: "&", omittingEmptySubsequences: false) {
            if let name = parameter.prefixMatch(of: secret)?.output {
                shown.append("\(name)…")
            } else if let end = parameter.firstIndex(of: "="), openParameters.contains(parameter[..<end]) {
                shown.append(parameter)
            } else if shown.last?.hasSuffix("…") != true {
                shown.append("…")
            }
        }
        return shown.joined(separator: "&")
    }
}
