import ArgumentParser
import Roost
import RoostAPI

/// `roost effects`: permanently failed effects.
struct Effects: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List background work that the server gave up on, and retry it.",
        discussion: """
            An effect that fails is retried after increasing pauses, and is dead after its kind's number of attempts. The server's log \
            says why. For admins and services.
            """,
        subcommands: [List.self, Retry.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List dead effects, the newest first.")

        @OptionGroup var page: PageOptions
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let found = try await page.read(through: connection) { ListDeadEffects(limit: $0, cursor: $1) }
                try page.show(found, with: options, none: "No dead effects.") { effects in
                    let rows = effects.map { effect in
                        [
                            effect.kind.safe(), effect.key.isEmpty ? "-" : effect.key.safe(), "\(effect.attempts)",
                            effect.failureCode.safe(), MessageTime.moment(of: effect.deadAt.date),
                        ]
                    }
                    return Output.table([["kind", "key", "attempts", "failure", "since"]] + rows)
                }
            }
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Retry a dead effect, or all of them.")

        @Argument(help: "The effect's kind, as listed.") var kind: String?
        @Argument(help: "The effect's key; left out if the list shows none.") var key = ""
        @Flag(help: "All dead effects.") var all = false
        @OptionGroup var options: CallOptions

        func validate() throws {
            guard (kind == nil) == all else { throw ValidationError("Name a kind and a key, or give --all.") }
        }

        func run() async throws {
            try await options.run { connection in
                guard let kind else { return try await retryAll(through: connection) }
                let dead = try await Self.deadEffects(through: connection)
                guard dead.contains(where: { $0.kind == kind && $0.key == key }) else {
                    // For an effect that isn't dead, the server only says that it exists.
                    let name = key.isEmpty ? kind.safe() : "\(kind.safe()) with the key \(key.safe())"
                    throw Failure("There is no dead effect \(name). See roost effects list. (not_found)")
                }
                let done = try await connection.call(RetryEffect(kind: kind, key: key))
                try options.show(done, ["Retrying the effect."])
            }
        }

        private static func deadEffects(through connection: CallConnection) async throws -> [DeadEffect] {
            var dead: [DeadEffect] = []
            var list = ListDeadEffects(limit: Limits.effectPage.max)
            repeat {
                let page = try await connection.call(list)
                dead += page.items
                list.cursor = page.nextCursor
            } while list.cursor != nil
            return dead
        }

        private func retryAll(through connection: CallConnection) async throws {
            let dead = try await Self.deadEffects(through: connection)
            for effect in dead {
                do {
                    _ = try await connection.call(RetryEffect(kind: effect.kind, key: effect.key))
                } catch let error as RoostError where error.code == .notFound {
                    // Someone else retried it, and it has run.
                }
            }
            try options.show(["retried": dead.count], ["Retrying \(dead.count) \(dead.count == 1 ? "effect" : "effects")."])
        }
    }
}
