import Foundation
import Roost
import RoostAPI

/// Reports a client's connection status on standard error, and ends a command that can't continue.
@MainActor
struct ConnectionWatch {
    private let address: URL
    /// Whether the token was given and can't be renewed: its refusal is final.
    private let isTokenGiven: Bool
    /// The directory that tokens are made from, if none is given.
    private let secretDirectory: URL?
    /// The command that starts the server.
    private let startCommand: String
    /// Whether the first connection is reported too, not only one that was waited for.
    private let announcesFirst: Bool

    nonisolated init(to server: ServerOptions, announcesFirst: Bool) throws {
        address = try server.address()
        isTokenGiven = server.isTokenGiven
        secretDirectory = server.secretDirectory
        startCommand = server.startCommand
        self.announcesFirst = announcesFirst
    }

    /// Runs a body in parallel to the watch.
    ///
    /// - Parameter isIdle: Whether nothing is waiting for a connection: then a failure to connect ends the command.
    /// - Throws: The body's error, a server's refusal as a ``Failure``; a ``Failure`` if the client no longer tries to connect.
    func run(
        over chat: Chat, isIdle: @escaping @Sendable @MainActor () -> Bool,
        _ body: @escaping @Sendable @MainActor () async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do { try await body() } catch let error as RoostError { throw failure(after: error) }
            }
            group.addTask { try await follow(chat.connection.updates, isIdle: isIdle) }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Returns when the task is cancelled.
    private func follow(_ updates: AsyncStream<ConnectionStatus>, isIdle: @Sendable @MainActor () -> Bool) async throws {
        var isOnlineReported = !announcesFirst
        var isAdvised = false
        // The same reason for repeated retries is reported once.
        var reportedReason: String?
        var wasOnline = false
        for await status in updates {
            if let failure = failure(of: status) { throw failure }
            // The body, which waits for the first connection, also fails with it: whichever is first, it is reported once.
            if case .refused(let error) = status, !wasOnline { throw failure(after: error) }
            if status == .online { wasOnline = true }
            let reason = reason(of: status)
            if let reason, isIdle() { throw Failure(reason) }
            guard let text = description(of: status), !(status == .online && isOnlineReported),
                reason == nil || reason != reportedReason
            else {
                continue
            }
            reportedReason = reason
            Output.note(text)
            if status.isWithoutServer, !isAdvised { Output.note(StatusLine.noServer(startCommand)) }
            if status.isWithoutServer || status == .online { isAdvised = true }
            isOnlineReported = status == .online
        }
    }

    private nonisolated func failure(after error: RoostError) -> Failure {
        Failure(error.summaryLine(ofTokenFrom: secretDirectory, at: address))
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
