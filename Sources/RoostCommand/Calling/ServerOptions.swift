import ArgumentParser
import Foundation
import Roost
import RoostAPI

/// The server and the token: the options of every command that connects to a server.
struct ServerOptions: ParsableArguments {
    @Option(help: "The server's address. Default: http://127.0.0.1:8080. Environment: ROOST_URL.") var url: String?
    @Option(help: "The server's data directory, for its secret. Default: roost-data or roost-demo. Environment: ROOST_DATA.")
    var data: String?
    @Option(help: "A token for the user, made by roost token. Environment: ROOST_TOKEN.") var token: String?

    func validate() throws {
        try PathArgument.refuseEmpty(("--data", data))
        guard let token, Self.trimmed(token) == nil else { return }
        throw ValidationError("--token is empty.")
    }

    /// Whether a token is given. If none is, one has to be issued.
    var isTokenGiven: Bool { untestedToken != nil }

    /// Where the given token came from, to follow the word in a sentence; empty if it is the option's, which is in sight.
    var tokenOrigin: String { token == nil ? " (from ROOST_TOKEN)" : "" }

    /// The given token; nil if one has to be issued.
    ///
    /// - Throws: A ``Failure``, or a `ValidationError` for that of the option, if it can't be sent: it has a character that no token has.
    var givenToken: String? {
        get throws {
            guard let given = untestedToken else { return nil }
            guard given.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                let fault = "has a character that no token has."
                if token != nil { throw ValidationError("The token (from --token) \(fault)") }
                throw Failure("The token\(tokenOrigin) \(fault)")
            }
            return given
        }
    }

    private var untestedToken: String? { (token ?? ProcessInfo.processInfo.variable("ROOST_TOKEN")).flatMap(Self.trimmed) }

    /// Returns a token without white space around it, such as the end of the line that it was read from; nil if nothing is left.
    private static func trimmed(_ token: String) -> String? {
        let text = token.trimmingCharacters(in: .whitespacesAndNewlines)
        return text.isEmpty ? nil : text
    }

    /// The address as it was given. Its path is the prefix that a proxy adds to the server's paths.
    func address() throws -> URL { try serverAddress().url }

    /// The address of the socket, for the SDK.
    func socketAddress() throws -> URL { try serverAddress().socket }

    private func serverAddress() throws -> ServerAddress {
        let variable = ProcessInfo.processInfo.variable("ROOST_URL")
        do { return try ServerAddress(url ?? variable ?? "http://127.0.0.1:8080") } catch {
            guard url != nil else { throw Failure("ROOST_URL \(error.requirement)") }
            throw ValidationError("--url \(error.requirement)")
        }
    }

    /// The directory that tokens are made from; nil if there is none, or if a token is given, whose server's directory isn't known.
    var secretDirectory: URL? { isTokenGiven ? nil : (TokenMint.named(data) ?? TokenMint.usual())?.directory }

    /// The command that starts the server whose directory tokens are made from.
    var startCommand: String { secretDirectory.map(TokenMint.startCommand(of:)) ?? "roost serve" }

    /// Returns the mint that makes tokens with the secret of the server's data directory.
    func mint() throws -> TokenMint {
        guard let mint = TokenMint.named(data) ?? .usual() else {
            throw Failure(
                "There is no server's data directory here to make a token from. Start a server (roost demo), name its directory with --data, or give a token with --token."
            )
        }
        return mint
    }
}
