import Foundation
public import Roost
public import RoostAPI

/// What the walks through an app's work have in common: two people who are connected, and words for what is seen.
@MainActor
public enum Walk {
    /// Connects ann and bob to the server that the program's argument names. Without a server it waits for one, and says so; what keeps it from
    /// connecting ends the program.
    ///
    /// - Parameter name: The program's name.
    public static func begin(_ name: String) async -> (ann: Chat, bob: Chat) {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
            say("usage: \(name) http://127.0.0.1:8080")
            exit(64)
        }
        server = url
        // A client asks for a token again and again. What isn't there won't come.
        for name in ["ann", "bob"].map({ tokenName(of: $0) }) where ProcessInfo.processInfo.environment[name] == nil {
            say("\(name) is missing: a token, made by roost token.")
            exit(64)
        }
        let (ann, bob) = (chat(as: "ann", at: url), chat(as: "bob", at: url))
        // Connecting goes on until there is a server. Whoever waits is told which one.
        let notice = Task {
            try await Task.sleep(for: .seconds(3))
            say("Waiting for a server at \(url). Is one running there?")
        }
        do {
            try await ann.connect()
            try await bob.connect()
        } catch {
            say("\(error)")
            exit(1)
        }
        notice.cancel()
        return (ann, bob)
    }

    /// A second device of a person, which isn't connected yet.
    public static func second(deviceOf chat: Chat) -> Chat { Self.chat(as: chat.user, at: server) }

    private static var server = URL(fileURLWithPath: "/")

    /// The tokens come from the app's own backend, which here is the environment.
    private static func chat(as user: UserID, at url: URL) -> Chat {
        let name = tokenName(of: user)
        // These programs have nothing to keep for their next run. An app leaves the storage as it is.
        return Chat(url: url, user: user, configuration: .init(storage: .inMemory)) {
            guard let token = ProcessInfo.processInfo.environment[name] else {
                throw RoostError(.unauthenticated, "\(name) is missing.")
            }
            return token
        }
    }

    private static func tokenName(of user: UserID) -> String { "\(user.rawValue.uppercased())_TOKEN" }

    private static func say(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }

    /// Ends the program with a message when something isn't as the text beside it says.
    public static func expect(_ condition: Bool, _ what: String) {
        guard condition else {
            say("failed: \(what)")
            exit(1)
        }
        print("✓ \(what)")
    }

    /// The code of a refusal; nil when there was none.
    public static func refusal(_ body: () async throws -> Void) async -> RoostError.Code? {
        do { try await body() } catch { return (error as? RoostError)?.code }
        return nil
    }
}
