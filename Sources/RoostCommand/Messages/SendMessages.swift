import ArgumentParser
import Foundation
import Roost
import RoostAPI

extension Messages {
    struct Send: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send a message, or each line of standard input as one.",
            discussion: """
                Without TEXT all of standard input is the message; with --lines each of its lines is one, and a refusal ends it there. \
                A message that is sent again with the same --client-id is sent once; with --lines the client ids are that of the option, a hyphen \
                and the line's number. Without it they are random.
                """)

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: "The text.") var text: String?
        @Flag(help: "Each line of standard input is a message.") var lines = false
        @Option(help: ArgumentHelp("The sender's own id of the message.", valueName: "id")) var clientId: String?
        @Option(help: ArgumentHelp("A user whom it mentions. Give it again for more.", valueName: "user")) var mention: [UserID] =
            []
        @Flag(help: "It mentions the channel.") var mentionChannel = false
        @Option(help: "The app's own classification.") var customType: String?
        @Option(help: ArgumentHelp("The message that it replies to.", valueName: "id")) var parent: MessageID?
        @Option(help: ArgumentHelp("The app's own data, as JSON.", valueName: "json")) var metadata: JSONArgument?
        @Flag(help: "It is unread for nobody.") var silent = false
        @OptionGroup var options: CallOptions

        func validate() throws {
            if lines, text != nil { throw ValidationError("--lines reads standard input; there can't be a text as well.") }
        }

        func run() async throws {
            let first = clientId ?? UUID().uuidString
            try await options.run { connection in
                guard lines else {
                    return try await send(try text ?? Self.input(), as: ClientID(first), through: connection)
                }
                var number = 0
                while let line = await StandardInput.nextLine() {
                    number += 1
                    // An empty line is no message.
                    if line.allSatisfy(\.isWhitespace) { continue }
                    do {
                        try await send(line, as: ClientID("\(first)-\(number)"), through: connection)
                    } catch let error as RoostError {
                        throw Failure("line \(number): \(error.summaryLine)")
                    }
                }
            }
        }

        private func send(_ text: String, as clientId: ClientID, through connection: CallConnection) async throws {
            let mentionees = (mention.isEmpty ? [] : [.users(mention)]) + (mentionChannel ? [Mentionee.channel] : [])
            let content = MessageContent(
                text: text, customType: customType, metadata: metadata?.value, parentId: parent, mentionees: mentionees.orNil,
                isSilent: silent)
            let sent = try await connection.call(SendMessage(channel: channel, clientId: clientId, content: content))
            try options.show(sent, MessageText.table([sent]))
            for user in sent.droppedMentions ?? [] {
                Output.note("\(user.rawValue.safe()) isn't mentioned: no member who may read it.")
            }
        }

        /// All of standard input, without the end of its last line.
        private static func input() throws -> String {
            // A text may have eight bytes for each of its characters. One byte more, and the end of the line, shows that it is too long, and no more is held.
            let most = Limits.messageTextLength * 8 + 2
            let bytes = try FileHandle.standardInput.read(upToCount: most) ?? Data()
            guard
                var text = String(data: bytes, encoding: .utf8)
                    ?? (bytes.count == most ? String(decoding: bytes, as: UTF8.self) : nil)
            else { throw Failure("Standard input isn't UTF-8 text.") }
            if text.hasSuffix("\n") { text.removeLast() }
            return text
        }
    }
}
