import ArgumentParser
import RoostAPI
import RoostServer

/// A server's rules for the claims of tokens, as far as its settings can be known from here; flags of a running server can't.
struct TokenRules: Sendable {
    /// The longest time from `iat` to `exp`, in seconds.
    var lifetimeSecondsMax = AppOptions.tokenLifetimeSecondsStandard
    /// The required value of `iss`; nil for any.
    var issuer: String?
    /// The value that `aud` must contain; nil for any.
    var audience: String?

    /// The rules if nothing is set.
    init() {}

    init(_ settings: Settings) {
        let server = settings.server
        lifetimeSecondsMax = server.options.tokenLifetimeSecondsMax
        (issuer, audience) = (server.tokenIssuer, server.tokenAudience)
    }

    /// Reads the rules of a data directory from its configuration file and the environment.
    ///
    /// If they can't be read, the defaults apply, with a warning on standard error: a running server must have other settings, since it
    /// couldn't start with these, and a token can still be made.
    static func load(data: String) async -> TokenRules {
        do {
            return TokenRules(try await Settings.load(try SettingFlags.parse(["--data", data])))
        } catch {
            Output.note(
                "Warning: the server's settings can't be read, so the defaults of token-issuer, token-audience and token-lifetime-max "
                    + "apply here. \(Failure(error))")
            return TokenRules()
        }
    }

    /// Returns the setting that a claim is checked against; nil if there is none.
    static func setting(of claim: String) -> Setting? {
        switch claim {
        case "iss": .tokenIssuer
        case "aud": .tokenAudience
        case "exp": .tokenLifetimeMax
        default: nil
        }
    }
}
