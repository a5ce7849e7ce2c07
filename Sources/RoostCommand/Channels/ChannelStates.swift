import ArgumentParser
import Roost

extension Channels {
    struct Freeze: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Let only operators send, until it is unfrozen.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var options: CallOptions

        func run() async throws { try await options.showChannel(after: FreezeChannel(channel: channel)) }
    }

    struct Unfreeze: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Let members send again.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var options: CallOptions

        func run() async throws { try await options.showChannel(after: UnfreezeChannel(channel: channel)) }
    }

    struct Silence: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Silence ordinary members, for a time.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Option(
            name: .customLong("for"),
            help: ArgumentHelp(
                "How long: seconds, or like 90s, 45m, 12h, 30d. (default: until it is unsilenced)", valueName: "time"))
        var duration: Lifetime?
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.showChannel(after: SilenceChannel(channel: channel, seconds: duration?.seconds))
        }
    }

    struct Unsilence: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "End a silence.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var options: CallOptions

        func run() async throws { try await options.showChannel(after: UnsilenceChannel(channel: channel)) }
    }

    struct Hide: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Hide a channel from the user's own lists.",
            discussion: "The next message brings it back, unless it is archived.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Flag(help: "Keep it hidden until it is unhidden.") var archive = false
        @Flag(help: "Conceal its messages so far, for good.") var clear = false
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let membership = try await connection.call(
                    HideChannel(channel: channel, hidePreviousMessages: clear, allowAutoUnhide: !archive))
                try options.show(
                    membership, ["\(channel.rawValue.safe()) is \(archive ? "archived" : "hidden until its next message")."])
            }
        }
    }

    struct Unhide: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show a hidden channel again.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var options: CallOptions

        func run() async throws {
            try await options.run { connection in
                let membership = try await connection.call(UnhideChannel(channel: channel))
                try options.show(membership, ["\(channel.rawValue.safe()) is in the lists again."])
            }
        }
    }
}

extension CallOptions {
    /// Calls an operation that answers with the channel as it is then, and prints that.
    fileprivate func showChannel<Call: RoostAPI.Operation>(after operation: Call) async throws where Call.Response == Channel {
        try await run { connection in
            let channel = try await connection.call(operation)
            try show(channel, ChannelText.details(channel))
        }
    }
}
