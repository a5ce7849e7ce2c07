import ArgumentParser
import Roost
import RoostAPI

extension Channels {
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a channel.",
            discussion:
                "The user becomes its owner and first member. If a distinct channel with the same members exists, it is shown instead."
        )

        @Argument(help: "The channel's id, which never changes. Generated if left out.") var channel: ChannelID?
        @Option(help: "The channel's type: see roost channels types.") var type: ChannelType = .community
        @Option(help: "An initial member. Repeat for more.") var user: [UserID] = []
        @Option(help: ArgumentHelp("An initial member who becomes an operator. Repeat for more.", valueName: "user"))
        var `operator`: [UserID] = []
        @Flag(help: "At most one channel for these members.") var distinct = false
        @Flag(help: "Don't store its messages.") var ephemeral = false
        @Option(help: "An idempotency key: used again within 7 days, it shows the channel that was created with it.") var key:
            String?
        @OptionGroup var attributes: AttributeOptions
        @Flag(
            help:
                "Whether everyone can find and join it, or only members find it and invite others. If neither is given, the type decides."
        )
        var access: PublicOrPrivate?
        @OptionGroup var options: CallOptions

        func run() async throws {
            let operation = CreateChannel(
                channel: channel, type: type, attributes: attributes.texts, tags: attributes.tag.orNil,
                metadata: attributes.metadata?.value, users: user.orNil, operators: self.operator.orNil,
                isDistinct: distinct ? true : nil, isPublic: access.map { $0 == .public }, isEphemeral: ephemeral ? true : nil,
                policy: attributes.policy, idempotencyKey: key)
            let others = [
                "type": "--type", "users": "--user", "operators": "--operator", "idempotencyKey": "--key",
                "isPublic": access.option,
            ]
            let names = AttributeOptions.names.merging(others) { $1 }
            try await options.run(naming: names) { connection in
                let view = try await connection.call(operation)
                try options.show(view, ChannelText.details(view))
            }
        }
    }

    struct Update: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change a channel's attributes.",
            discussion: "Attributes that aren't given stay unchanged. An empty text removes a value: --name ''.")

        @Argument(help: "The channel's id.") var channel: ChannelID
        @OptionGroup var attributes: AttributeOptions
        @Flag(
            help:
                "Whether everyone can find and join it, or only members find it and invite others. If neither is given, unchanged.")
        var access: PublicOrPrivate?
        @Flag(help: "Remove all tags.") var noTags = false
        @Option(
            help: ArgumentHelp("Write the metadata only if this is still its version.", valueName: "version"),
            transform: NumberArgument.whole)
        var ifMetadataVersion: Int?
        @OptionGroup var options: CallOptions

        func validate() throws {
            guard !attributes.isEmpty || access != nil || noTags else {
                throw ValidationError("Nothing to change: give at least one attribute, like --name.")
            }
            guard attributes.tag.isEmpty || !noTags else { throw ValidationError("Give either --tag or --no-tags.") }
        }

        func run() async throws {
            let operation = UpdateChannel(
                channel: channel, attributes: attributes.texts, tags: noTags ? [] : attributes.tag.orNil,
                metadata: attributes.metadata?.value, ifMetadataVersion: ifMetadataVersion,
                isPublic: access.map { $0 == .public }, policy: attributes.policy)
            let others = ["ifMetadataVersion": "--if-metadata-version", "isPublic": access.option]
            try await options.run(naming: AttributeOptions.names.merging(others) { $1 }) { connection in
                let channel = try await connection.call(operation)
                try options.show(channel, ChannelText.details(channel))
            }
        }
    }
}

/// The attributes that can be set when a channel is created, and later.
struct AttributeOptions: ParsableArguments {
    @Option(help: "The name that people see.") var name: String?
    @Option(help: "A tag. Repeat for more.") var tag: [String] = []
    @Option(help: "The app's own classification of the channel.") var customType: String?
    @Option(help: ArgumentHelp("The URL of a picture.", valueName: "address")) var cover: String?
    @Option(
        help: ArgumentHelp("A JSON object of the app's own: '{\"floor\": 3}'.", valueName: "json"), transform: JSONArgument.read)
    var metadata: JSONArgument?
    @Option(help: ArgumentHelp("Maximum number of members.", valueName: "number"), transform: NumberArgument.whole)
    var maxMembers: Int?

    /// The options, by the names of the fields that they set.
    static let names = [
        "displayName": "--name", "tags": "--tag", "customType": "--custom-type", "coverUrl": "--cover", "metadata": "--metadata",
        "policy.maxMembers": "--max-members",
    ]

    func validate() throws {
        guard let maxMembers, !(1...Limits.membersPerChannel).contains(maxMembers) else { return }
        throw ValidationError("--max-members must be from 1 to \(Limits.membersPerChannel); it is \(maxMembers).")
    }

    /// The text attributes. An uploaded file and data have no option.
    var texts: ChannelAttributes { ChannelAttributes(displayName: name, coverUrl: cover, customType: customType) }

    var policy: PolicyChanges? { maxMembers.map { PolicyChanges(maxMembers: $0) } }

    var isEmpty: Bool { texts == ChannelAttributes() && tag.isEmpty && metadata == nil && maxMembers == nil }
}

/// The flags `--public` and `--private`. Each command defines its own default.
enum PublicOrPrivate: String, EnumerableFlag {
    case `public`, `private`
}

extension PublicOrPrivate? {
    /// The flag as it was typed.
    fileprivate var option: String { "--\((self ?? .public).rawValue)" }
}
