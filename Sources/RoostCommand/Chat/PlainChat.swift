import Foundation
import Roost
import RoostAPI

/// A chat in lines: each line of standard input is sent or obeyed, each message is printed once. For pipes and scripts.
@MainActor
final class PlainChat {
    private var room: Room
    private let address: URL
    private var list: MessageList
    private var printing: Task<Void, Never>?
    private var lastPrinted: Seq = 0
    private var isCatchingUp = false
    /// Sent messages that aren't on the server's disk yet.
    private var waiting: Set<ClientID> = []
    private var refusals = 0
    /// Whether the user knows what to do without a server: there has been one, or it was printed.
    private var isAdvised = false

    /// - Parameter address: The server's, to be told while there is no connection.
    init(_ room: Room, at address: URL) {
        self.room = room
        self.address = address
        list = Self.list(of: room)
    }

    /// Messages that are printed at the start.
    private static let historyLength = 20

    private static func list(of room: Room) -> MessageList { room.channel.messages(pageSize: historyLength) }

    func run() async throws {
        let status = room.chat.connection.observe { [weak self] status in self?.tell(status) }
        defer { status.invalidate() }

        try await enter()
        defer { printing?.cancel() }
        while let line = await StandardInput.nextLine() {
            guard try await handle(line) else { break }
        }
        await settle()
        if refusals > 0 { throw Failure("\(refusals) of the lines were refused.") }
    }

    /// Whether to continue.
    private func handle(_ line: String) async throws -> Bool {
        switch ChatLine(line) {
        case .message(let text): await send(text)
        case .quit: return false
        case .help(let name): Output.lines(name.map(ChatHelp.lines(of:)) ?? ChatHelp.plainLines)
        case .scrollback: refuse("that works on a screen only")
        case .refused(let reason): refuse(reason)
        case .room(let command):
            // Input is handled in order.
            await settle()
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
        Output.lines(answer.lines)
        guard let id = answer.enters, id != room.channel.id else { return }
        printing?.cancel()
        let left = room
        room = room.next(id)
        list = Self.list(of: room)
        lastPrinted = 0
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
                await show(state.messages.messages)
                let list = list
                printing = Task { for await update in list.updates { await show(update.items, of: list) } }
                return
            } catch let error as RoostError where error.isRetryable {
                try await Task.sleep(for: .milliseconds(200))
            } catch let error as RoostError {
                throw Failure(error.summaryLine)
            }
        }
    }

    private func send(_ line: String) async {
        guard !line.isEmpty else { return }
        let clientId = ClientID(UUID().uuidString.lowercased())
        waiting.insert(clientId)
        do {
            try await room.channel.send(MessageDraft(text: line, clientId: clientId))
        } catch {
            refuse(clientId, (error as? RoostError)?.summaryLine ?? "\(error)")
        }
    }

    /// Waits until all that was sent is on the server's disk, or refused.
    private func settle() async {
        // Each pass sees the list as it is then: the last one has everything settled and printed.
        for await update in list.updates {
            await show(update.items, of: list)
            if waiting.isEmpty { break }
        }
    }

    private func show(_ items: [MessageItem], of list: MessageList) async {
        // A list that was left may still have had updates.
        guard list === self.list else { return }
        if lastPrinted > 0, let first = Self.firstSeq(of: items), first > lastPrinted { return await catchUp(list) }
        await show(items)
    }

    private static func firstSeq(of items: [MessageItem]) -> Seq? { items.first?.message?.seq }

    /// More came at once than a list holds: goes back to what was printed last, and reads from there to the newest messages.
    private func catchUp(_ list: MessageList) async {
        guard !isCatchingUp else { return }
        isCatchingUp = true
        defer { isCatchingUp = false }
        while list.hasOlder, let first = Self.firstSeq(of: list.items), first > lastPrinted {
            try? await list.loadOlder()
            guard list === self.list, Self.firstSeq(of: list.items) != first else { break }
        }
        while list === self.list {
            await show(list.items)
            guard list.hasNewer, (try? await list.loadNewer()) != nil else { break }
        }
    }

    private func show(_ items: [MessageItem]) async {
        for item in items where item.id.sender == room.chat.user && waiting.contains(item.clientId) {
            switch item.state {
            case .pending: continue
            case .sent: waiting.remove(item.clientId)
            // Lines don't wait: the refusal is the answer.
            case .waiting(let error), .failed(let error): refuse(item.clientId, error.summaryLine)
            }
        }
        room.note(items.lazy.map(\.sender))
        await show(items.compactMap(\.message))
    }

    private func show(_ messages: [Message]) async {
        let room = room
        guard messages.contains(where: { $0.seq > lastPrinted }) else { return }
        _ = await room.learnNames(of: messages.filter { $0.seq > lastPrinted }.map(\.sender))
        // While names were fetched, another pass may have printed some of these, or the channel may have been left.
        for message in messages where message.seq > lastPrinted && room === self.room {
            lastPrinted = message.seq
            guard message.deletedAt == nil else { continue }
            let time = MessageTime.minute(of: message.createdAt.date)
            let sort = MessageText.sort(of: message).map { "[\($0)] " } ?? ""
            Output.line("[\(time)] \(room.name(of: message.sender)): \(sort)\(message.text.safe())")
        }
    }

    private func refuse(_ clientId: ClientID, _ reason: String) {
        waiting.remove(clientId)
        refuse("Not sent: \(reason)")
    }

    private func refuse(_ reason: String) {
        refusals += 1
        Output.note(reason)
    }

    private func tell(_ status: ConnectionStatus) {
        guard let text = Self.describe(status, at: address) else { return }
        Output.note(text)
        if status.isWithoutServer, !isAdvised { Output.note(StatusLine.noServer) }
        if status.isWithoutServer || status == .online { isAdvised = true }
    }

    private static func describe(_ status: ConnectionStatus, at address: URL) -> String? {
        switch status {
        case .offline, .connecting: nil
        case .online: "Online."
        case .waiting(let until, let reason):
            """
            No connection to \(address.absoluteString.safe()): \(reason.message.safe()); trying again in \
            \(max(1, Int(until.date.timeIntervalSinceNow))) s.
            """
        case .refused(let error): "The server refuses the token: \(error.summaryLine)"
        case .failed(let error): "The client can't connect: \(error.summaryLine)"
        }
    }
}
