import ArgumentParser
import Foundation
import Roost
import RoostAPI

/// The caller and the server: the options of every command that makes calls.
struct AskingOptions: ParsableArguments {
    @Option(
        name: .customLong("as"),
        help: ArgumentHelp(
            "The user to act as. Signs a token with the data directory's secret, or uses a service token on their behalf.",
            valueName: "user")
    )
    var user: UserID?
    @Flag(help: "Act as an admin of the app. With --as, on the server's machine.") var admin = false
    @OptionGroup var server: ServerOptions

    /// Connects for some calls, with a newly issued token unless one was given. An error response becomes one line on standard error and exit code 1.
    func run(_ body: (CallConnection) async throws -> Void) async throws {
        let url = try server.address()
        let (called, secretDirectory) = try await callServer(at: url)
        do {
            try await CallConnection.run(called, body)
        } catch let error as CallConnection.Lost {
            throw error.failure
        } catch let error as RoostError {
            let line = error.summaryLine(ofTokenFrom: secretDirectory, at: url)
            throw Failure([line, advice(after: error)].compactMap { $0 }.joined(separator: " "))
        }
    }

    /// How the caller gets an admin's token, after an error for lack of one.
    private func advice(after error: RoostError) -> String? {
        guard !admin, error.code == .notPermitted, error.rule?.hasSuffix("needs an admin's token") == true else { return nil }
        return server.isTokenGiven ? "On the server's machine, --as with --admin makes one." : "Add --admin."
    }

    /// The error for `--admin` beside a given token.
    var adminWithToken: ValidationError {
        ValidationError("--admin makes an admin's token from the data directory; a given token\(server.tokenOrigin) is used as is.")
    }

    /// Returns the server with the token to use, and the directory that the token was made from if it wasn't given.
    private func callServer(at url: URL) async throws -> (CallServer, secretDirectory: URL?) {
        if let token = try server.givenToken {
            guard !admin else { throw adminWithToken }
            // Text that isn't a token at all is left for the server to refuse.
            guard let user, let owner = TokenOwner(token), owner.user != user else {
                return (CallServer(url, token: token, actsAs: nil), nil)
            }
            guard owner.role == .service else {
                throw Failure(
                    "The token\(server.tokenOrigin) is for \(owner.user.rawValue.safe()), not for \(user.rawValue.safe()).")
            }
            return (CallServer(url, token: token, actsAs: user), nil)
        }
        guard let user else { throw ServerOptions.noToken }
        let mint = try server.mint()
        let token = try await mint.token(for: user, role: admin ? .admin : .user)
        var called = CallServer(url, token: token, actsAs: nil)
        called.startCommand = TokenMint.startCommand(of: mint.directory)
        return (called, mint.directory)
    }
}

/// The caller, the server and the output format: the options of the commands for scripts.
struct CallOptions: ParsableArguments {
    @OptionGroup var asking: AskingOptions
    @Flag(help: "Print JSON: the response as in the protocol.") var json = false

    /// Connects for some calls.
    ///
    /// - Parameter optionNames: The options that set fields of the calls, by the fields' names: an error names the option.
    func run(naming optionNames: [String: String] = [:], _ body: (CallConnection) async throws -> Void) async throws {
        try await asking.run { connection in
            do { try await body(connection) } catch let error as RoostError {
                throw error.naming(PageOptions.names.merging(optionNames) { $1 })
            }
        }
    }

    /// Prints a response: as lines, or all of it as JSON.
    func show<Answer: Encodable>(_ answer: Answer, _ lines: @autoclosure () -> [String]) throws {
        if json { try Output.json(answer) } else { try Output.lines(lines()) }
    }

    /// Prints the outcome for each of several users, failures on standard error. Exit code 1 if there was one.
    ///
    /// - Parameter failures: The outcomes that count as failures.
    func show(_ results: MemberResults, failures: Set<MemberResult.Outcome> = [.refused]) throws {
        let failed = results.results.filter { failures.contains($0.outcome) }
        try show(results, MemberText.lines(of: results.results.filter { !failures.contains($0.outcome) }))
        guard !failed.isEmpty else { return }
        // The JSON includes them.
        if !json { for line in MemberText.lines(of: failed) { Output.note(line) } }
        throw ExitCode(1)
    }
}

extension ServerOptions {
    static let noToken = ValidationError(
        "No token. Give one with --token or ROOST_TOKEN, or, on the server's machine, a user with --as.")
}

extension RoostError {
    /// The same error, with an option's name in place of the field that the message begins with.
    func naming(_ optionNames: [String: String]) -> RoostError {
        var named = namingCommands
        guard let field, let name = optionNames[field], message.hasPrefix("\(field) ") else { return named }
        named.message = name + named.message.dropFirst(field.count)
        return named
    }

    /// The same error, with a command in place of the operation that it advises to call, and an option in place of the field to give.
    var namingCommands: RoostError {
        var named = self
        named.message = message.replacing(": see type.list.", with: ": see roost channels types.")
            .replacing(": membership member.", with: ": --membership member.")
        return named
    }

    /// The error as one line: the server's message, its code, and when it ends, if it does.
    var summaryLine: String {
        let end = until.map { $0 == .forever ? ", forever" : ", until \(MessageTime.moment(of: $0.date))" } ?? ""
        return "\(message.safe()) (\(code.rawValue)\(end))"
    }

    /// The same, with advice if the server refuses a token made by the command. An error about a claim names it; one about the signature,
    /// as for a token made with another server's secret, doesn't.
    ///
    /// - Parameter directory: The directory that the token was made from; nil if it was given.
    func summaryLine(ofTokenFrom directory: URL?, at url: URL) -> String {
        guard let directory, code == .unauthenticated else { return summaryLine }
        guard let claim = field else {
            return
                "The server at \(url.absoluteString.safe()) doesn't accept tokens made from \(directory.relativePath). Name its data directory with --data. (\(code.rawValue))"
        }
        guard let setting = TokenRules.setting(of: claim) else { return summaryLine }
        let file = directory.appending(path: Settings.fileName).relativePath
        return
            "\(summaryLine) The server's \(setting.name) isn't the one that this command uses: put it into \(file), or set \(setting.environmentName)."
    }
}
