import Foundation
import Roost
import RoostAPI

/// A chat in lines, for pipes and scripts: each line of standard input is sent or executed, and each message is printed once, as are edits
/// and deletions of printed ones.
@MainActor
final class PlainChat {
    private var room: Room
    private let watch: ConnectionWatch
    private var list: MessageList
    private var printing: Task<Void, Never>?
    /// Reads the first line, started before there is a connection.
    private var firstLine: Task<String?, any Error>?
    /// Whether the input has ended without a line.
    private var isInputEmpty = false
    private var hasEntered = false
    private var printed = PrintedMessages()
    /// The list that goes back to the last printed message.
    private var catchingUp: MessageList?
    /// Sent messages that aren't on the server's disk yet.
    private var waiting: Set<ClientID> = []
    /// Refused messages that are being taken out of the outbox.
    private var discarding: [Task<Void, Never>] = []
    private var refusals = 0
    /// Ends the chat when something can't be printed.
    private let failures: AsyncStream<any Error>.Continuation
    private let failed: AsyncStream<any Error>

    init(_ room: Room, watch: ConnectionWatch) {
        self.room = room
        self.watch = watch
        list = Self.list(of: room)
        (failed, failures) = AsyncStream.makeStream()
    }

    /// The number of messages printed at the start.
    private static let historyLength = 20

    private static func list(of room: Room) -> MessageList { room.channel.messages(pageSize: historyLength) }

    func run() async throws {
        defer { printing?.cancel() }
        let failed = failed
        try await watch.run(over: room.chat, isIdle: { self.isInputEmpty && !self.hasEntered }) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.talk() }
                group.addTask { for await error in failed { throw error } }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
        if refusals > 0 { throw Failure(refusals == 1 ? "1 line was refused." : "\(refusals) lines were refused.") }
    }

    private func talk() async throws {
        firstLine = Task { try await beginInput() }
        try await enter()
        hasEntered = true
        while true {
            do {
                guard let line = try await nextLine(), try await handle(line) else { break }
            } catch let error as LineReader.InvalidLine {
                refuse("Not sent: \(error)")
            }
        }
        try await settle()
    }

    private func beginInput() async throws -> String? {
        let line = try await StandardInput.nextLine()
        guard line == nil, !Task.isCancelled else { return line }
        isInputEmpty = true
        // With nothing to send, don't wait for the next attempt to find out that there is no connection.
        if case .waiting = room.chat.connection.status { room.chat.nudge() }
        return nil
    }

    private func nextLine() async throws -> String? {
        guard let first = firstLine else { return try await StandardInput.nextLine() }
        firstLine = nil
        return try await withTaskCancellationHandler {
            try await first.value
        } onCancel: {
            first.cancel()
        }
    }

    /// Whether to continue.
    private func handle(_ line: String) async throws -> Bool {
        switch ChatLine(line) {
        case .message(let text): await send(text)
        case .quit: return false
        case .help(let name): try Output.lines(name.map(ChatHelp.lines(of:)) ?? ChatHelp.plainLines)
        case .scrollback: refuse("that works on a screen only")
        case .refused(let reason): refuse(reason)
        case .room(let command):
            // Input is handled in order.
            try await settle()
            try await carryOut(command)
        }
        return true
    }

    private func carryOut(_ command: RoomCommand) async throws {
        let answer: RoomAnswer
        do {
            answer = try await room.carryOut(command)
        } catch let error as RoostError {
            return refuse(error.summaryLine)
        }
        try Output.lines(answer.lines)
        if !answer.refusals.isEmpty { refuse(answer.refusals.joined(separator: "\n")) }
        guard let id = answer.enters, id != room.channel.id else { return }
        printing?.cancel()
        let left = room
        room = room.next(id)
        list = Self.list(of: room)
        printed = PrintedMessages()
        try? await left.channel.unwatch()
        try await enter()
    }

    /// Joins the channel, prints its newest messages and then each one as it arrives. If the connection is lost meanwhile, it starts over.
    private func enter() async throws {
        while true {
            do {
                try await room.chat.connect()
                if try await room.enter() { Output.note("The channel \(room.channel.id) was just created.") }
                let state = try await room.channel.watch(limit: Self.historyLength)
                try await show(state.messages.messages)
                printed.hasBegun = true
                let list = list
                printing = Task {
                    do {
                        for await update in list.updates { try await show(update.items, of: list) }
                    } catch is CancellationError {
                        // The channel was left, or the chat ends.
                    } catch {
                        failures.yield(error)
                    }
                }
                return
            } catch let error as RoostError where error.isRetryable {
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private func send(_ line: String) async {
        guard !line.isEmpty else { return }
        let clientId = ClientID.random()
        waiting.insert(clientId)
        do {
            try await room.channel.send(MessageDraft(text: line, clientId: clientId))
        } catch {
            waiting.remove(clientId)
            refuse("Not sent: \(PlainWords.line(of: error))")
        }
    }

    /// Waits until all sent messages are on the server's disk, or refused.
    private func settle() async throws {
        // Each pass sees the current list; by the last one everything is settled and printed.
        for await update in list.updates {
            try await show(update.items, of: list)
            // A pass that is catching up shows these.
            while catchingUp === list { try await Task.sleep(for: .milliseconds(50)) }
            if waiting.isEmpty { break }
        }
        for task in discarding { await task.value }
        discarding = []
    }

    private func show(_ items: [MessageItem], of list: MessageList) async throws {
        // A list that was left may still have had updates.
        guard list === self.list else { return }
        printed.forgetOtherHistory(than: items.lazy.compactMap(\.message))
        if printed.isMissingSome(before: Self.firstSeq(of: items)) { return try await catchUp(list) }
        try await show(items)
    }

    private static func firstSeq(of items: [MessageItem]) -> Seq? { items.first?.message?.seq }

    /// Called when more messages arrived at once than a list holds: goes back to the last printed one and reads from there to the newest.
    /// If the connection is lost meanwhile, it continues on the next one.
    private func catchUp(_ list: MessageList) async throws {
        guard catchingUp !== list else { return }
        catchingUp = list
        defer { if catchingUp === list { catchingUp = nil } }
        while list === self.list {
            printed.forgetOtherHistory(than: list.items.lazy.compactMap(\.message))
            let first = Self.firstSeq(of: list.items)
            do {
                if list.hasOlder, printed.isMissingSome(before: first) {
                    try await list.loadOlder()
                    guard Self.firstSeq(of: list.items) == first else { continue }
                    // There is nothing older after all.
                    guard list === self.list else { return }
                }
                try await show(list.items)
                guard list.hasNewer else { return }
                try await list.loadNewer()
            } catch let error as RoostError where error.isRetryable {
                try await waitToAskAgain()
            } catch let error as RoostError {
                guard list === self.list else { return }
                Output.note("Some messages are missing here: \(error.summaryLine)")
                // From now on a list of only the newest messages shows new ones.
                await list.showNewest()
                if list === self.list { try await show(list.items) }
                return
            }
        }
    }

    /// After a call that may succeed later, waits a moment and then until there is a connection.
    private func waitToAskAgain() async throws {
        try await Task.sleep(for: .seconds(1))
        for await status in room.chat.connection.updates where status == .online { break }
    }

    private func show(_ items: [MessageItem]) async throws {
        for item in items where item.id.sender == room.chat.user && waiting.contains(item.clientId) {
            switch item.state {
            case .pending: continue
            case .sent: waiting.remove(item.clientId)
            // Lines don't wait: the refusal is final, so the message isn't sent later either.
            case .waiting(let error), .failed(let error): giveUp(item, because: error.summaryLine)
            case .forAnotherServer: giveUp(item, because: "it was meant for another server's data.")
            }
        }
        room.note(items.lazy.map(\.sender))
        try await show(items.compactMap(\.message))
    }

    private func giveUp(_ item: MessageItem, because reason: String) {
        waiting.remove(item.clientId)
        refuse("Not sent: \(reason)")
        discarding.append(Task { [list] in await list.discard(item.clientId) })
    }

    private func show(_ messages: [Message]) async throws {
        let room = room
        for message in messages { try showChange(of: message) }
        guard messages.contains(where: printed.isNew) else { return }
        _ = await room.learnNames(of: messages.filter(printed.isNew).map(\.sender))
        // While names were fetched, another pass may have printed some of these, or the channel may have been left.
        for message in messages where printed.isNew(message) && room === self.room {
            printed.add(message)
            if message.deletedAt == nil { try show(message) }
        }
    }

    private func show(_ message: Message) throws {
        let time = MessageTime.minute(of: message.createdAt.date)
        let sort = MessageText.sort(of: message).map { "[\($0)] " } ?? ""
        let edited = message.editedAt == nil ? "" : " (edited)"
        try Output.line("[\(time)] \(room.name(of: message.sender)): \(sort)\(message.text.safe())\(edited)")
    }

    /// Prints an already printed message again if it was edited, or reports its deletion.
    private func showChange(of message: Message) throws {
        switch printed.noteChange(of: message) {
        case nil: break
        case .edited: try show(message)
        case .deleted:
            let time = MessageTime.minute(of: message.createdAt.date)
            try Output.line("[\(time)] \(room.name(of: message.sender)): (deleted)")
        }
    }

    private func refuse(_ reason: String) {
        refusals += 1
        Output.note(reason)
    }
}
