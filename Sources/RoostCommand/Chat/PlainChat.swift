import Foundation
import Roost
import RoostAPI

/// A chat in lines: each line of standard input is sent or obeyed, each message is printed once, and each edit and deletion of one that was printed. For pipes
/// and scripts.
@MainActor
final class PlainChat {
    private var room: Room
    private let watch: ConnectionWatch
    private var list: MessageList
    private var printing: Task<Void, Never>?
    /// Reads the first line, which is begun before there is a connection.
    private var firstLine: Task<String?, any Error>?
    /// Whether the input has ended without a line.
    private var isInputEmpty = false
    private var hasEntered = false
    private var lastPrinted: Seq = 0
    /// When each of the last messages that were printed was edited.
    private var printed: [Seq: Timestamp?] = [:]
    private var isCatchingUp = false
    /// Sent messages that aren't on the server's disk yet.
    private var waiting: Set<ClientID> = []
    /// Refused messages that are being taken out of the outbox.
    private var discarding: [Task<Void, Never>] = []
    private var refusals = 0
    /// Ends the chat when what came can't be printed.
    private let failures: AsyncStream<any Error>.Continuation
    private let failed: AsyncStream<any Error>

    init(_ room: Room, watch: ConnectionWatch) {
        self.room = room
        self.watch = watch
        list = Self.list(of: room)
        (failed, failures) = AsyncStream.makeStream()
    }

    /// Messages that are printed at the start.
    private static let historyLength = 20

    /// Printed messages whose changes are printed too.
    private static let rememberedMax = 1000

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
            } catch let error as LineReader.Unfit {
                refuse("Not sent: \(error)")
            }
        }
        try await settle()
    }

    private func beginInput() async throws -> String? {
        let line = try await StandardInput.nextLine()
        guard line == nil, !Task.isCancelled else { return line }
        isInputEmpty = true
        // Whoever has nothing to send doesn't wait for the next attempt to learn that there is no connection.
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
        (lastPrinted, printed) = (0, [:])
        try? await left.channel.unwatch()
        try await enter()
    }

    /// Joins the channel and prints its newest messages, and then each as it comes. A connection that is lost meanwhile only means to begin again.
    private func enter() async throws {
        while true {
            do {
                try await room.chat.connect()
                if try await room.enter() { Output.note("The channel \(room.channel.id) is new: it was made just now.") }
                let state = try await room.channel.watch(limit: Self.historyLength)
                try await show(state.messages.messages)
                let list = list
                printing = Task {
                    do {
                        for await update in list.updates { try await show(update.items, of: list) }
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

    /// Waits until all that was sent is on the server's disk, or refused.
    private func settle() async throws {
        // Each pass sees the list as it is then: the last one has everything settled and printed.
        for await update in list.updates {
            try await show(update.items, of: list)
            if waiting.isEmpty { break }
        }
        for task in discarding { await task.value }
        discarding = []
    }

    private func show(_ items: [MessageItem], of list: MessageList) async throws {
        // A list that was left may still have had updates.
        guard list === self.list else { return }
        if lastPrinted > 0, let first = Self.firstSeq(of: items), first > lastPrinted { return try await catchUp(list) }
        try await show(items)
    }

    private static func firstSeq(of items: [MessageItem]) -> Seq? { items.first?.message?.seq }

    /// More came at once than a list holds: goes back to what was printed last, and reads from there to the newest messages.
    private func catchUp(_ list: MessageList) async throws {
        guard !isCatchingUp else { return }
        isCatchingUp = true
        defer { isCatchingUp = false }
        while list.hasOlder, let first = Self.firstSeq(of: list.items), first > lastPrinted {
            try? await list.loadOlder()
            guard list === self.list, Self.firstSeq(of: list.items) != first else { break }
        }
        while list === self.list {
            try await show(list.items)
            guard list.hasNewer, (try? await list.loadNewer()) != nil else { break }
        }
    }

    private func show(_ items: [MessageItem]) async throws {
        for item in items where item.id.sender == room.chat.user && waiting.contains(item.clientId) {
            switch item.state {
            case .pending: continue
            case .sent: waiting.remove(item.clientId)
            // Lines don't wait: the refusal is the answer, and so the message isn't sent later either.
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
        guard messages.contains(where: { $0.seq > lastPrinted }) else { return }
        _ = await room.learnNames(of: messages.filter { $0.seq > lastPrinted }.map(\.sender))
        // While names were fetched, another pass may have printed some of these, or the channel may have been left.
        for message in messages where message.seq > lastPrinted && room === self.room {
            lastPrinted = message.seq
            guard message.deletedAt == nil else { continue }
            printed[message.seq] = .some(message.editedAt)
            if printed.count > Self.rememberedMax, let first = printed.keys.min() { printed[first] = nil }
            try show(message)
        }
    }

    private func show(_ message: Message) throws {
        let time = MessageTime.minute(of: message.createdAt.date)
        let sort = MessageText.sort(of: message).map { "[\($0)] " } ?? ""
        let edited = message.editedAt == nil ? "" : " (edited)"
        try Output.line("[\(time)] \(room.name(of: message.sender)): \(sort)\(message.text.safe())\(edited)")
    }

    /// Prints a printed message once more if it was edited, or that it is gone.
    private func showChange(of message: Message) throws {
        guard let editedAt = printed[message.seq] else { return }
        if message.deletedAt != nil {
            printed[message.seq] = nil
            let time = MessageTime.minute(of: message.createdAt.date)
            try Output.line("[\(time)] \(room.name(of: message.sender)): (deleted)")
        } else if message.editedAt != editedAt {
            printed[message.seq] = .some(message.editedAt)
            try show(message)
        }
    }

    private func refuse(_ reason: String) {
        refusals += 1
        Output.note(reason)
    }
}
