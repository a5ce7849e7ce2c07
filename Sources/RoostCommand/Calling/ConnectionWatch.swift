import Foundation
import Roost
import RoostAPI

/// Tells on standard error what becomes of a client's connection, and ends what can't go on.
@MainActor
struct ConnectionWatch {
    private let address: URL
    /// Whether nothing makes new tokens: a refusal of this one is final.
    private let isTokenGiven: Bool
    /// The command that starts the server.
    private let startCommand: String
    /// Whether the first connection is told too, not only one that was waited for.
    private let announcesFirst: Bool

    nonisolated init(to server: ServerOptions, announcesFirst: Bool) throws {
        address = try server.address()
        isTokenGiven = server.givenToken != nil
        startCommand = server.startCommand
        self.announcesFirst = announcesFirst
    }

    /// Runs a body beside the watch.
    ///
    /// - Parameter isIdle: Whether nothing waits for a connection: then one that can't be made is the end.
    /// - Throws: What the body throws; a ``Failure`` when the client won't connect any more.
    func run(
        over chat: Chat, isIdle: @escaping @Sendable @MainActor () -> Bool,
        _ body: @escaping @Sendable @MainActor () async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await body() }
            group.addTask { try await follow(chat.connection.updates, isIdle: isIdle) }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Returns when the task is cancelled.
    private func follow(_ updates: AsyncStream<ConnectionStatus>, isIdle: @Sendable @MainActor () -> Bool) async throws {
        var isTold = !announcesFirst
        var isAdvised = false
        // It goes on trying for the same reason: that is told once.
        var toldReason: String?
        for await status in updates {
            if let failure = failure(of: status) { throw failure }
            let reason = reason(of: status)
            if let reason, isIdle() { throw Failure(reason) }
            guard let text = description(of: status), !(status == .online && isTold), reason == nil || reason != toldReason else {
                continue
            }
            toldReason = reason
            Output.note(text)
            if status.isWithoutServer, !isAdvised { Output.note(StatusLine.noServer(startCommand)) }
            if status.isWithoutServer || status == .online { isAdvised = true }
            isTold = status == .online
        }
    }

    private func failure(of status: ConnectionStatus) -> Failure? {
        switch status {
        case .refused(let error) where isTokenGiven || error.code == .userDeactivated, .failed(let error):
            Failure(description(of: status) ?? error.summaryLine)
        default: nil
        }
    }

    /// Why there is no connection; nil if there is one, or soon may be.
    private func reason(of status: ConnectionStatus) -> String? {
        switch status {
        case .offline, .connecting, .online: nil
        case .waiting(_, let reason): absence(because: reason) + "."
        case .refused, .failed: description(of: status)
        }
    }

    private func absence(because reason: WaitingReason) -> String {
        "No connection to \(address.absoluteString.safe()): \(reason.words)"
    }

    private func description(of status: ConnectionStatus) -> String? {
        switch status {
        case .offline, .connecting: nil
        case .online: "Online."
        case .waiting(let until, let reason):
            "\(absence(because: reason)); trying again in \(max(1, Int(until.date.timeIntervalSinceNow))) s."
        case .refused(let error): "The server refuses the token: \(error.summaryLine)"
        case .failed(let error): "The client can't connect: \(error.summaryLine)"
        }
    }
}
