import Foundation
public import Roost
public import RoostAPI

/// Shared by the example programs: two connected users, and checks that print what they have seen.
@MainActor
public enum Walk {
    /// Connects ann and bob to the server that the program's argument names. Without a server it waits for one, and says so; an error while
    /// connecting ends the program.
    ///
    /// - Parameter name: The program's name.
    public static func begin(_ name: String) async -> (ann: Chat, bob: Chat) {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
            say("usage: \(name) http://127.0.0.1:8080")
            exit(64)
        }
        server = url
        // A client would ask for a token again and again, but a missing one won't appear.
        for name in ["ann", "bob"].map({ tokenName(of: $0) }) where ProcessInfo.processInfo.environment[name] == nil {
            say("\(name) is missing: a token, made by roost token.")
            exit(64)
        }
        let (ann, bob) = (chat(as: "ann", at: url), chat(as: "bob", at: url))
        // Connecting continues until there is a server: say which one is expected.
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

    /// A user's second device, not connected yet.
    public static func second(deviceOf chat: Chat) -> Chat { Self.chat(as: chat.user, at: server) }

    private static var server = URL(fileURLWithPath: "/")

    /// The tokens come from the app's own backend, which here is the environment.
    private static func chat(as user: UserID, at url: URL) -> Chat {
        let name = tokenName(of: user)
        // These programs keep nothing for their next run. An app uses the default storage.
        return Chat(url: url, user: user, configuration: .init(storage: .inMemory)) {
            guard let token = ProcessInfo.processInfo.environment[name] else {
                throw RoostError(.unauthenticated, "\(name) is missing.")
            }
            return token
        }
    }

    private static func tokenName(of user: UserID) -> String { "\(user.rawValue.uppercased())_TOKEN" }

    private static func say(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }

    /// Ends the program with a message if the condition that the text describes doesn't hold.
    public static func expect(_ condition: Bool, _ what: String) {
        guard condition else {
            say("failed: \(what)")
            exit(1)
        }
        print("✓ \(what)")
    }

    /// The code of a refusal; nil if there was none.
    public static func refusal(_ body: () async throws -> Void) async -> RoostError.Code? {
        do { try await body() } catch { return (error as? RoostError)?.code }
        return nil
    }
}
