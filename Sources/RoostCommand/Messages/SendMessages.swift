import ArgumentParser
import Foundation
import Roost
import RoostAPI

extension Messages {
    struct Send: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send a message, or each line of standard input as one.",
            discussion: """
                Without TEXT, all of standard input is the message; with --lines, each of its lines is one, however long it takes to arrive, and \
                the first refusal ends the command. \
                A message that is sent again with the same --client-id is stored once; with --lines, a client id is the option's value, a hyphen \
                and the line's number. Without the option, client ids are random.

                With --kind admin it is sent as the app's own, by an admin or a backend, who need not be a member: add --admin to --as. With \
                --kind custom and --custom-type it may have no text: TEXT is ''.
                """)

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Argument(help: "The text.") var text: String?
        @Flag(help: "Each line of standard input is a message.") var lines = false
        @Option(help: ArgumentHelp("The sender's own id of the message.", valueName: "id")) var clientId: String?
        @OptionGroup var fields: ContentOptions
        @OptionGroup var options: CallOptions

        func validate() throws {
            if lines, text != nil { throw ValidationError("--lines reads standard input; TEXT can't be given as well.") }
        }

        /// How long a connection is used. Its token, if made here, is valid for an hour, or less if the server's limit is lower.
        private static let connectionAgeMax = Duration.seconds(1800)

        func run() async throws {
            let first = clientId ?? ClientID.random().rawValue
            guard lines else {
                let text = try text ?? input()
                return try await options.run(naming: fields.names) { try await send(text, as: ClientID(first), through: $0) }
            }
            var source = Lines()
            if StandardInput.isTerminal { Output.note("Type the messages, one per line; Ctrl-D ends the list.") }
            do {
                while !source.isAtEnd {
                    try await options.run(naming: fields.names) { try await send(&source, as: first, through: $0) }
                }
            } catch let failure as Failure where source.line != nil {
                throw Failure("line \(source.number): \(failure)")
            } catch let error as LineReader.InvalidLine {
                throw Failure("line \(source.number): \(error)")
            }
        }

        /// The lines of standard input, up to the first unsent one.
        private struct Lines {
            var number = 0
            /// The unsent line; nil once it is sent.
            var line: String?
            var isAtEnd = false

            /// Reads the next line unless one is unsent. An empty line isn't a message.
            mutating func read() async throws {
                while line == nil, !isAtEnd {
                    number += 1
                    line = try await StandardInput.nextLine()
                    isAtEnd = line == nil
                    if line?.allSatisfy(\.isWhitespace) == true { line = nil }
                }
            }
        }

        /// Sends lines through a connection, to the end of the input or until another connection is needed: a server closes an idle one,
        /// and the token made for it may have expired. A line without a response, or refused for the token, is sent again through the next
        /// connection; its client id deduplicates it.
        private func send(_ source: inout Lines, as first: String, through connection: CallConnection) async throws {
            let start = ContinuousClock.now
            var isNewForLine = source.line != nil
            while true {
                try await source.read()
                guard let line = source.line, ContinuousClock.now - start < Self.connectionAgeMax else { return }
                do {
                    try await send(line, as: ClientID("\(first)-\(source.number)"), through: connection)
                } catch is CallConnection.Lost where !isNewForLine {
                    return
                } catch let error as RoostError where error.code == .tokenExpired && !isNewForLine && makesTokens {
                    return
                }
                (source.line, isNewForLine) = (nil, false)
            }
        }

        /// Whether a token is made for each connection.
        private var makesTokens: Bool { !options.asking.server.isTokenGiven }

        private func send(_ text: String, as clientId: ClientID, through connection: CallConnection) async throws {
            let content = fields.content(text: text)
            let sent: [Message]
            if content.kind == .admin {
                let answer = try await connection.call(
                    SendAdminMessage(channels: [channel], clientId: clientId, content: content))
                sent = answer.messages
                try options.show(answer, MessageText.table(sent))
            } else {
                let answer = try await connection.call(SendMessage(channel: channel, clientId: clientId, content: content))
                sent = [answer]
                try options.show(answer, MessageText.table(sent))
            }
            for user in sent.flatMap({ $0.droppedMentions ?? [] }) {
                Output.note("\(user.rawValue.safe()) isn't mentioned: no member who may read it.")
            }
        }

        /// All of standard input, without the end of its last line.
        private func input() throws -> String {
            if StandardInput.isTerminal { Output.note("Type the message; Ctrl-D sends it.") }
            // One byte more than a text may have, plus the line end, shows that it is too long, so no more is read.
            let most = Limits.messageTextLength * Limits.bytesPerCharacterMax + 2
            let bytes = try StandardInput.all(upTo: most)
            guard
                var text = String(validating: bytes, as: UTF8.self)
                    ?? (bytes.count == most ? String(decoding: bytes, as: UTF8.self) : nil)
            else { throw Failure("Standard input isn't UTF-8 text.") }
            // A carriage return and a newline are one character.
            if text.last == "\n" || text.last == "\r\n" { text.removeLast() }
            guard !text.isEmpty || fields.kind == .custom else {
                throw Failure("There is no text: give TEXT, or write it to standard input.")
            }
            return text
        }
    }
}
