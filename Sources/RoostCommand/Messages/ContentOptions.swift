import ArgumentParser
import RoostAPI

/// A message's fields besides its text: an option for each field of ``MessageContent``.
struct ContentOptions: ParsableArguments {
    @Option(help: "The kind of message. An admin message is the app's own: for admins and backends.") var kind: Kind = .text
    @Option(help: ArgumentHelp("A user to mention. Repeat for more.", valueName: "user")) var mention: [UserID] = []
    @Flag(help: "Mention the whole channel.") var mentionChannel = false
    @Option(help: "The app's own classification. A custom message needs one.") var customType: String?
    // The name `--data` is taken by the data directory.
    @Option(help: ArgumentHelp("The app's own payload, as text.", valueName: "text")) var messageData: String?
    @Option(help: ArgumentHelp("The app's own data, a JSON object.", valueName: "json"), transform: JSONArgument.read)
    var metadata: JSONArgument?
    @Option(help: "A tag. Repeat for more.") var tag: [String] = []
    @Option(
        help: ArgumentHelp("A value of one of its lists: colors=red. Repeat for more.", valueName: "list=value"),
        transform: MetaArrayArgument.read)
    var metaArray: [MetaArrayArgument] = []
    @Option(help: ArgumentHelp("The message that it replies to.", valueName: "id"), transform: NumberArgument.messageID)
    var parent: MessageID?
    @Option(help: ArgumentHelp("A language to translate its text into: pt-BR. Repeat for more.", valueName: "language"))
    var targetLanguage: [String] = []
    @Option(help: ArgumentHelp("Which members get a push notification.", valueName: "option")) var pushOption: PushOption = .default
    @Flag(help: "Send it silently: it is never unread.") var silent = false

    /// The kinds that callers may send; the server sends the others itself.
    enum Kind: String, CaseIterable, ExpressibleByArgument {
        case text, admin, custom

        fileprivate var ofMessage: MessageKind {
            switch self {
            case .text: .text
            case .admin: .admin
            case .custom: .custom
            }
        }
    }

    func validate() throws {
        guard kind == .custom, customType?.isEmpty != false else { return }
        throw ValidationError("--kind custom needs --custom-type: what the message is to the app.")
    }

    /// The options, by the names of the fields that they set.
    var names: [String: String] {
        [
            "customType": "--custom-type", "data": "--message-data", "metadata": "--metadata", "tags": "--tag",
            "parentId": "--parent", "mentionees": mention.isEmpty ? "--mention-channel" : "--mention", "metaArrays": "--meta-array",
            "targetLanguages": "--target-language", "clientId": "--client-id",
        ]
    }

    /// The content of a message with a text.
    func content(text: String) -> MessageContent {
        let mentionees = (mention.isEmpty ? [] : [.users(mention)]) + (mentionChannel ? [Mentionee.channel] : [])
        let lists = Dictionary(grouping: metaArray, by: \.name).mapValues { values in values.map(\.value) }
        return MessageContent(
            text: text, kind: kind.ofMessage, customType: customType, data: messageData, metadata: metadata?.value, tags: tag.orNil,
            parentId: parent, mentionees: mentionees.orNil, metaArrays: lists.isEmpty ? nil : lists, pushOption: pushOption,
            targetLanguages: targetLanguage.orNil, isSilent: silent)
    }
}

/// A value of a message's list of texts, as typed: `colors=red`.
struct MetaArrayArgument {
    let name: String
    let value: String

    /// Reads an option's value. Everything after the first `=` is the list's value.
    ///
    /// - Throws: `ValidationError` with the format.
    static func read(_ text: String) throws -> MetaArrayArgument {
        guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
            throw ValidationError("a list's value must be like colors=red")
        }
        return MetaArrayArgument(name: String(text[..<equals]), value: String(text[text.index(after: equals)...]))
    }
}
