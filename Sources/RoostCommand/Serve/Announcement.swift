import Foundation
import Logging
import RoostServer

/// A server's message on standard output when it listens.
struct Announcement {
    let settings: Settings
    let address: URL

    /// Prints a message. A server whose output can't be written continues, since possibly nobody wanted to read it.
    static func show(_ lines: [String]) {
        do { try Output.lines(lines) } catch {
            Logger(label: "roost").warning(
                "The server's address can't be written to standard output.", metadata: ["error": "\(error)"])
        }
    }

    /// The command that runs this program again, as typed, for a shell.
    static var program: String {
        let typed = CommandLine.arguments.first ?? "roost"
        return typed.hasSuffix("/roost") || typed == "roost" ? typed.shellWord : "roost"
    }

    /// The message on the first run: everything that a newcomer needs next.
    var first: [String] {
        let directory = settings.dataDirectory.path
        let secret = SecretFile(directory: settings.dataDirectory).url.path
        return [
            "Roost \(RoostVersion.current)", "",
            "  address   \(address)",
            "  data      \(directory)",
            "  secret    \(secret) (it signs tokens: keep it secret)", "",
            "Next, in another terminal:", "",
            "  \(Self.program) chat general --as ann\(options)",
            "  \(Self.program) token ann\(dataOption)", "",
        ]
    }

    var later: [String] { ["Roost \(RoostVersion.current) listens on \(address), data in \(settings.dataDirectory.path)."] }

    /// The options with which roost chat finds this server.
    var options: String {
        // A chat finds the usual directories by itself.
        let isFound = TokenMint.usual()?.directory.path == settings.dataDirectory.path
        let dataOption = isFound ? "" : dataOption
        return address.absoluteString == "http://127.0.0.1:8080"
            ? dataOption : "\(dataOption) --url \(address.absoluteString.shellWord)"
    }

    private var dataOption: String {
        let data = settings.text(.data)
        return data == "\(Setting.data.standard)" ? "" : " --data \(data.shellWord)"
    }
}
