import Foundation
import Roost

/// A chat in lines: each line of standard input is sent, each message is printed once. For pipes and scripts.
@MainActor
final class PlainChat {
    private let room: Room
    private var lastPrinted: Seq = 0
    /// What was sent and isn't on the server's disk yet.
    private var waiting: Set<ClientID> = []
    private var refusals = 0

    init(_ room: Room) { self.room = room }

    /// Messages that are printed at the start.
    private static let historyLength = 20

    func run() async throws {
        let status = room.chat.connection.observe { status in
            if let text = Self.describe(status) { Output.note(text) }
        }
        defer { status.invalidate() }

        try await enter()
        let list = room.channel.messages(pageSize: Self.historyLength)
        let printing = Task { for await update in list.updates { await show(update.items) } }
        defer { printing.cancel() }

        while let line = await StandardInput.nextLine() { await send(line) }
        // Each pass sees the list as it is then: the last one has everything settled and printed.
        for await update in list.updates {
            await show(update.items)
            if waiting.isEmpty { break }
        }
        if refusals > 0 { throw Failure("\(refusals) of the lines were not sent.") }
    }

    /// Joins the channel and prints its newest messages. A connection that is lost meanwhile only means to begin again.
    private func enter() async throws {
        while true {
            do {
                try await room.chat.connect()
                if try await room.enter() { Output.note("The channel \(room.channel.id) is new: it was made just now.") }
                let state = try await room.channel.watch(limit: Self.historyLength)
                return await show(state.messages.messages)
            } catch let error as RoostError where error.isRetryable {
                try await Task.sleep(for: .milliseconds(200))
            } catch let error as RoostError {
                throw Failure("\(error.message.safe()) (\(error.code.rawValue))")
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
            refuse(clientId, (error as? RoostError)?.message ?? "\(error)")
        }
    }

    private func show(_ items: [MessageItem]) async {
        for item in items where item.sender == room.chat.user && waiting.contains(item.clientId) {
            switch item.state {
            case .pending: continue
            case .sent: waiting.remove(item.clientId)
            case .failed(let error): refuse(item.clientId, error.message)
            }
        }
        await show(items.compactMap(\.message))
    }

    private func show(_ messages: [Message]) async {
        let new = messages.filter { $0.seq > lastPrinted }
        guard !new.isEmpty else { return }
        _ = await room.learnNames(of: new.map(\.sender))
        // While names were asked for, another pass may have printed some of these.
        for message in new where message.seq > lastPrinted {
            lastPrinted = message.seq
            guard message.deletedAt == nil else { continue }
            let time = MessageTime.minute(of: message.createdAt.date)
            Output.line("[\(time)] \(room.name(of: message.sender)): \(message.text.safe())")
        }
    }

    private func refuse(_ clientId: ClientID, _ reason: String) {
        waiting.remove(clientId)
        refusals += 1
        Output.note("Not sent: \(reason.safe())")
    }

    private static func describe(_ status: ConnectionStatus) -> String? {
        switch status {
        case .offline, .connecting: nil
        case .online: "Online."
        case .waiting(let delay): "No connection; trying again in \(max(1, Int(delay.components.seconds))) s."
        case .refused(let error): "The server refuses the token: \(error.message.safe())"
        }
    }
}
