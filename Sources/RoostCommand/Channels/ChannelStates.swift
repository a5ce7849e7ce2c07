import ArgumentParser
import Roost
import RoostAPI

extension Channels {
    struct Freeze: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Let only operators send, until it is unfrozen.")

        @OptionGroup var target: ChannelTarget
        var call: FreezeChannel { FreezeChannel(channel: target.channel) }
    }

    struct Unfreeze: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Let members send again.")

        @OptionGroup var target: ChannelTarget
        var call: UnfreezeChannel { UnfreezeChannel(channel: target.channel) }
    }

    struct Silence: ChannelCommand {
        static let configuration = CommandConfiguration(
            abstract: "Silence ordinary members, for a time or until they are unsilenced.")

        @Option(
            name: .customLong("for"),
            help: ArgumentHelp(
                "How long: seconds, or like 90s, 45m, 12h, 30d; ever, or -1, until it is unsilenced. (default: ever)",
                valueName: "time"),
            transform: Lifetime.readOrEver)
        var duration: Lifetime?
        @OptionGroup var target: ChannelTarget
        var call: SilenceChannel { SilenceChannel(channel: target.channel, seconds: duration?.seconds) }
        var optionNames: [String: String] { ["seconds": "--for"] }
    }

    struct Unsilence: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "End a silence.")

        @OptionGroup var target: ChannelTarget
        var call: UnsilenceChannel { UnsilenceChannel(channel: target.channel) }
    }

    struct Hide: ChannelCommand {
        static let configuration = CommandConfiguration(
            abstract: "Hide a channel from the user's own lists.",
            discussion: "The next message brings it back, unless it is archived.")

        @Flag(help: "Keep it hidden until it is unhidden.") var archive = false
        @Flag(help: "Conceal its messages so far permanently.") var clear = false
        @OptionGroup var target: ChannelTarget
        var call: HideChannel {
            HideChannel(channel: target.channel, hidePreviousMessages: clear, allowAutoUnhide: !archive)
        }
        func lines(of answer: Membership) -> [String] {
            ["\(target.name) is \(archive ? "archived" : "hidden until its next message")."]
        }
    }

    struct Unhide: ChannelCommand {
        static let configuration = CommandConfiguration(abstract: "Show a hidden channel again.")

        @OptionGroup var target: ChannelTarget
        var call: UnhideChannel { UnhideChannel(channel: target.channel) }
        func lines(of answer: Membership) -> [String] { ["\(target.name) is in the lists again."] }
    }
}
