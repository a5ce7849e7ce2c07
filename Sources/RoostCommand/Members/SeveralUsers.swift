import ArgumentParser
import Roost
import RoostAPI

extension Members {
    /// A channel and the users in it that a command concerns.
    struct Users: ParsableArguments {
        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: ArgumentHelp("The ids of the users.", valueName: "user")) var users: [UserID]
        @OptionGroup var options: CallOptions

        /// Makes as many calls as needed for the users, and prints the result for each. A call refused as a whole ends it, but earlier
        /// results are still printed.
        ///
        /// - Parameters:
        ///   - failures: The outcomes that count as failures.
        ///   - optionNames: The options that set fields of the calls, by the fields' names.
        func run<Call: RoostAPI.Operation>(
            failures: Set<MemberResult.Outcome> = [.refused], naming optionNames: [String: String] = [:],
            _ operation: @escaping ([UserID]) -> Call
        ) async throws where Call.Response == MemberResults {
            try await options.run(naming: optionNames) { connection in
                var done = MemberResults(results: [])
                var rest = users[...]
                while !rest.isEmpty {
                    let some = rest.prefix(Limits.membersPerCall)
                    rest = rest.dropFirst(some.count)
                    do {
                        done.results += try await connection.call(operation(Array(some))).results
                    } catch {
                        if !done.results.isEmpty { try? options.show(done, failures: failures) }
                        throw error
                    }
                }
                try options.show(done, failures: failures)
            }
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add users as members, without an invitation.")

        @OptionGroup var users: Users
        @Flag(help: "Don't show them earlier messages.") var hideHistory = false

        func run() async throws {
            try await users.run { AddMembers(channel: users.channel, users: $0, hideHistory: hideHistory ? true : nil) }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Remove members.")

        @OptionGroup var users: Users

        func run() async throws { try await users.run { RemoveMembers(channel: users.channel, users: $0) } }
    }

    struct Role: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give members a role.",
            discussion:
                "An owner who makes another member the owner becomes an operator: roost members role team bob --role owner --as ann"
        )

        @OptionGroup var users: Users
        @Option(help: "owner, operator, member, or a role of the app's own.") var role: ChannelRole

        func run() async throws {
            // A non-member can't be given the role, so that is a failure here, unlike when removing.
            try await users.run(failures: [.refused, .notMember], naming: ["role": "--role"]) {
                SetMemberRole(channel: users.channel, users: $0, role: role)
            }
        }
    }

    struct Invite: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Invite users.", discussion: "Users who accept invitations automatically become members at once.")

        @OptionGroup var users: Users
        @Option(help: "A welcome text for the invited users.") var welcome: String?

        func run() async throws {
            try await users.run(naming: ["welcome": "--welcome"]) {
                InviteMembers(channel: users.channel, users: $0, welcome: welcome)
            }
        }
    }

    struct Withdraw: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Withdraw invitations.")

        @OptionGroup var users: Users

        func run() async throws { try await users.run { WithdrawInvitations(channel: users.channel, users: $0) } }
    }
}
