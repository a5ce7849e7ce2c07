import ArgumentParser
import Roost
import RoostAPI

/// A command that makes one call about one channel and prints the result.
protocol ChannelCommand: AsyncParsableCommand {
    associatedtype Call: RoostAPI.Operation

    var target: ChannelTarget { get }
    var call: Call { get }
    /// The options that set fields of the call, by the fields' names.
    var optionNames: [String: String] { get }
    /// The response in readable form.
    func lines(of answer: Call.Response) -> [String]
}

/// The channel, and the caller.
struct ChannelTarget: ParsableArguments {
    @Argument(help: "The channel's id.") var channel: ChannelID
    @OptionGroup var options: CallOptions

    /// The channel's id, safe for a terminal.
    var name: String { channel.rawValue.safe() }
}

extension ChannelCommand {
    var optionNames: [String: String] { [:] }

    func run() async throws {
        try await target.options.run(naming: optionNames) { connection in
            let answer = try await connection.call(call)
            try target.options.show(answer, lines(of: answer))
        }
    }
}

extension ChannelCommand where Call.Response == Channel {
    func lines(of answer: Channel) -> [String] { ChannelText.details(answer) }
}

extension ChannelCommand where Call.Response == ChannelView {
    func lines(of answer: ChannelView) -> [String] { ChannelText.details(answer) }
}
