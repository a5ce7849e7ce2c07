import ArgumentParser
import Foundation
import RoostServer

/// `roost doctor`: checks everything that must be right for a server to run well here.
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check this machine, the data directory and the running server.",
        discussion: "Exit code 1 if a check fails. A warning suggests an improvement.")

    @OptionGroup var flags: SettingFlags
    @Option(help: "The server's address. Default: the one in the settings. Environment: ROOST_URL.") var url: String?
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        guard let url else { return }
        do { _ = try ServerAddress(url) } catch { throw ValidationError("--url \(error.requirement)") }
    }

    /// The address in `ROOST_URL`, where the commands that call a server look for it; nil if it isn't set.
    private static func addressOfEnvironment() throws -> String? {
        guard let variable = ProcessInfo.processInfo.variable("ROOST_URL") else { return nil }
        do { return try ServerAddress(variable).url.absoluteString } catch { throw Failure("ROOST_URL \(error.requirement)") }
    }

    func run() async throws {
        // Like other commands on the server's machine: next to a demo, its directory is used.
        let usual = TokenMint.usual()?.directory.relativePath
        let settings = try await Settings.load(flags, standardData: usual ?? "\(Setting.data.standard)")
        let typed = try url.map { try ServerAddress($0).url.absoluteString }
        let address = try typed ?? Self.addressOfEnvironment() ?? settings.address(port: settings.whole(.port)).absoluteString
        var findings = MachineChecks.findings(connectionsMax: settings.whole(.connectionsMax))
        findings += EnvironmentCheck(settings: settings).findings()
        findings += await SettingsCheck(settings: settings).findings()
        findings += await DirectoryChecks(directory: settings.dataDirectory).findings()
        findings += FileChecks(directory: settings.dataDirectory, isDatabaseHere: settings.server.database == nil).findings()
        findings += DefinitionsCheck(settings: settings).findings()
        findings += ClusterChecks(settings: settings).findings()
        findings += await ServerCheck(
            address: address, directory: settings.dataDirectory, isDatabaseHere: settings.server.database == nil
        ).findings()
        if json {
            try Output.json(findings)
        } else {
            try Output.lines(
                findings.map { "\($0.result.rawValue.padded(to: 4))  \($0.check): \($0.found)\($0.advice.map { ". \($0)" } ?? "")" }
            )
        }
        if findings.contains(where: { $0.result == .fail }) { throw ExitCode(1) }
    }
}

/// What one check found.
struct Finding: Encodable {
    enum Result: String, Encodable {
        case ok, warn, fail
    }

    let check: String
    let result: Result
    let found: String
    /// What to do about it.
    var advice: String?

    init(_ check: String, _ result: Result, _ found: String, advice: String? = nil) {
        self.check = check
        self.result = result
        // A failure's own text is a whole sentence, and the line continues with the advice after its own full stop.
        self.found = advice != nil && found.hasSuffix(".") ? String(found.dropLast()) : found
        self.advice = advice
    }
}
