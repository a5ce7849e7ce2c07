import ArgumentParser
import Foundation
import Logging
import Roost
import RoostAPI
import RoostServer

extension Messages {
    struct Follow: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print each message that is sent or changed from now on, one JSON object per line.",
            discussion: """
                The caller must be a member of the channel who may read it; following ends when they may no longer. Messages are printed in \
                order and without gaps; one that is edited or deleted is printed again, \
                and a permanently deleted one is reported by its seq as "purged". \
                With --after it begins after a seq, and first prints everything since then; after it ends, continue from the channelSeq of the last line.

                An ephemeral channel keeps no messages: those that arrive while connected are printed, and standard error reports where some may be missing. \
                It can't be followed with --after.

                It needs the user's own token, or --as on the server's machine: a service token can't follow on a user's behalf.

                While there is no connection it keeps trying, and says so on standard error. It ends if the server refuses the given token, \
                or after several internal errors in a row, such as answers that can't be read.
                """)

        @Argument(help: "The channel's id.") var channel: ChannelID
        @Option(help: ArgumentHelp("Begin after this seq.", valueName: "seq"), transform: NumberArgument.seq) var after: Seq?
        @Option(
            help: ArgumentHelp("End after this many messages, 1 or more.", valueName: "messages"), transform: NumberArgument.whole)
        var count: Int?
        @OptionGroup var asking: AskingOptions

        func validate() throws {
            if let count, count < 1 { throw ValidationError("--count must be 1 or more; it is \(count).") }
        }

        func run() async throws {
            let chat = try await asking.chat()
            let following = Following(
                chat: chat, channel: channel, after: after, countMax: count ?? .max, service: try asking.service)
            let watch = try ConnectionWatch(to: asking.server, announcesFirst: false)
            try await watch.run(over: chat, isIdle: { false }) { try await following.run() }
            await chat.disconnect()
        }
    }

    /// What to follow, from where and how far.
    private struct Following {
        let chat: Chat
        let channel: ChannelID
        let after: Seq?
        let countMax: Int
        /// The caller, if it is a service.
        let service: UserID?

        /// How often the server may answer a question with `internal_error` before following ends.
        private static let internalErrorsMax = 8

        /// A line of output.
        private struct Line: Encodable {
            let channelSeq: Seq
            var message: Message?
            /// The seq of a permanently deleted message.
            var purged: Seq?
        }

        func run() async throws {
            // Events only signal that something changed: the changes after the last position are fetched, so nothing is missed. An
            // ephemeral channel stores nothing, so there the events are all there is.
            var news = chat.events.makeAsyncIterator()
            try await chat.connect()
            let followed = try await untilAnswered { try await self.followed() }
            if let after { try check(after, in: followed) }
            let start = after ?? followed.counters.seq
            var position = start
            var left = countMax
            if followed.isEphemeral {
                Output.note(
                    "\(channel.rawValue.safe()) is ephemeral and keeps no messages: only new ones are printed.")
            }
            try await printChanges(after: &position, &left)
            while left > 0, let event = await nextNews(&news) {
                if followed.isEphemeral, try printEphemeral(event, after: start, &left) { continue }
                try await printChanges(after: &position, &left)
            }
        }

        /// Throws a ``Failure`` if the channel can't be followed from a seq.
        private func check(_ after: Seq, in followed: Channel) throws {
            guard !followed.isEphemeral else {
                throw Failure("--after can't be used with \(channel.rawValue.safe()): it is ephemeral and keeps no messages.")
            }
            let end = followed.counters.seq
            guard after <= end else { throw Failure("--after must be \(end) or less: the channel ends there.") }
        }

        /// Prints the message of an ephemeral channel's event, if it was sent after a seq. Reports where messages may be missing.
        ///
        /// - Returns: Whether the event has a message. Any other may mean that the caller is no longer a member, which fetching changes reveals.
        private func printEphemeral(_ event: ChatEvent, after start: Seq, _ left: inout Int) throws -> Bool {
            switch event {
            case .happened(let happening):
                guard let message = happening.message else { return false }
                if message.changeSeq > start { try write(Line(channelSeq: message.changeSeq, message: message), &left) }
                return true
            case .missed(let places):
                // Messages from before the first connection aren't missing.
                if let place = places[channel], place > 0 {
                    Output.note("Messages sent since \(place) may be missing: \(channel.rawValue.safe()) keeps none.")
                }
                return false
            }
        }

        private func write(_ line: Line, _ left: inout Int) throws {
            try Output.line(String(decoding: try JSONEncoder().encode(line), as: UTF8.self).escapingInvisibleJSON)
            left -= 1
        }

        /// Prints the changes after a position, and advances it. If the connection is lost meanwhile, it continues on the next one.
        private func printChanges(after position: inout Seq, _ left: inout Int) async throws {
            var hasMore = true
            while hasMore, left > 0 {
                let last = position
                let changes = try await untilAnswered {
                    let changes = try await self.chat.call(GetChannelChanges(channel: self.channel, after: last))
                    try await self.requireReading(changes, after: last)
                    return changes
                }
                // A page also has messages sent within it and changed beyond its end. These are printed at the seq of their change:
                // continuing after a line printed here would skip the changes in between.
                let messages = (changes.rows.messages ?? []).filter { $0.changeSeq <= changes.seq }
                    .map { Line(channelSeq: $0.changeSeq, message: $0) }
                let purged = (changes.rows.purged ?? []).map { Line(channelSeq: $0.changeSeq, purged: $0.seq) }
                for line in (messages + purged).sorted(by: { $0.channelSeq < $1.channelSeq }).prefix(left) {
                    try write(line, &left)
                }
                (position, hasMore) = (changes.seq, changes.hasMore)
            }
        }

        /// Asks the server until it answers: again after each temporary failure, on the next connection if there is none.
        ///
        /// - Throws: The last of ``internalErrorsMax`` times `internal_error` in a row. An answer that can't be read is such an error too, and the
        ///   same answer would come again for ever.
        private func untilAnswered<Answer>(_ ask: () async throws -> Answer) async throws -> Answer {
            var internalErrors = 0
            while true {
                do { return try await ask() } catch let error as RoostError where error.isRetryable {
                    internalErrors = error.code == .internalError ? internalErrors + 1 : 0
                    guard internalErrors < Self.internalErrorsMax else { throw error }
                    try await waitToRetry()
                }
            }
        }

        /// Waits for a moment, and then for a connection.
        private func waitToRetry() async throws {
            try await Task.sleep(for: .seconds(1))
            for await status in await chat.connection.updates where status == .online { break }
        }

        /// Throws if the caller may no longer read: changes without messages have gaps.
        private func requireReading(_ changes: Changes, after position: Seq) async throws {
            // Only callers who may read receive messages. A page without messages has the caller's permissions only if they changed within it.
            guard changes.seq > position, changes.rows.messages?.isEmpty != false else { return }
            var own = changes.rows.ownCapabilities?[channel.rawValue]
            if own == nil { own = try await chat.call(GetChannel(channel: channel)).ownCapabilities }
            guard own?.contains(.historyRead) == false else { return }
            throw RoostError(
                .notPermitted,
                "You may no longer read \(channel.rawValue.safe()). Once you may again, continue with --after \(position).")
        }

        /// The channel as it is now.
        private func followed() async throws -> Channel {
            let view = try await chat.call(GetChannel(channel: channel))
            guard view.membership?.state == .member else {
                if let service {
                    throw Failure("\(service.rawValue.safe()) isn't a member of the channel. \(AskingOptions.serviceAdvice)")
                }
                throw RoostError(
                    .notMember, "Only members follow a channel: roost members join \(channel.rawValue.safe().shellWord) joins it.")
            }
            guard view.ownCapabilities.contains(.historyRead) else {
                throw RoostError(.notPermitted, "You may not read \(channel.rawValue.safe()).")
            }
            return view.channel
        }

        /// Waits for an event of the channel. Returns nil once there can be no more.
        private func nextNews(_ news: inout ChatEvents.Iterator) async -> ChatEvent? {
            while let event = await news.next() {
                switch event {
                case .missed(let channels) where channels[channel] != nil: return event
                case .happened(let happening) where happening.channel == channel: return event
                case .missed, .happened: continue
                }
            }
            return nil
        }
    }
}

extension AskingOptions {
    /// A client for the caller that stores nothing.
    func chat() async throws -> Chat {
        let (owner, token) = try await tokenProvider()
        var configuration = Chat.Configuration(
            storage: .inMemory, device: nil, logger: Logger(label: "roost.messages", factory: StandardErrorLog.init(label:)))
        configuration.logger.logLevel = .error
        return Chat(url: try server.socketAddress(), user: owner, configuration: configuration, token: token)
    }

    fileprivate static let serviceAdvice = "A service makes calls on a user's behalf; following needs the user's own token."

    /// The user of a given service token; nil for other tokens.
    fileprivate var service: UserID? {
        get throws { try server.givenToken.flatMap { TokenOwner($0) }.flatMap { $0.role == .service ? $0.user : nil } }
    }

    /// The caller, and the provider of their tokens.
    private func tokenProvider() async throws -> (UserID, @Sendable () async throws -> String) {
        if let token = try server.givenToken {
            guard !admin else { throw adminWithToken }
            let owner = TokenOwner(token)
            guard let caller = owner?.user ?? user else { throw Failure("The token is not valid. (unauthenticated)") }
            if let user, user != caller {
                let names = "The token\(server.tokenOrigin) is for \(caller.rawValue.safe()), not for \(user.rawValue.safe())"
                // A socket always acts as the token's own user.
                guard owner?.role != .service else {
                    throw Failure("\(names). \(Self.serviceAdvice)")
                }
                throw Failure("\(names).")
            }
            return (caller, { token })
        }
        guard let user else { throw ServerOptions.noToken }
        return (user, try await server.mint().provider(for: user, role: admin ? .admin : .user))
    }
}
