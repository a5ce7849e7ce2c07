import Foundation
import Roost

/// What an app's backend answers with.
private struct Answer: Decodable {
    var token: String
}

private func token(server: URL, fetch: @escaping @Sendable (URLComponents) async throws -> Data) async throws {
    // sample.begin
    let chat = Chat(url: server, user: "ann") {
        var request = URLComponents()
        request.path = "/chat-token"
        let answer = try JSONDecoder().decode(Answer.self, from: try await fetch(request))
        return answer.token
    }
    // sample.end
    await chat.disconnect()
}

private struct SessionExpired: Error {}

@MainActor private func followSession(server: URL, backend: Backend, showSignIn: () -> Void) async {
    // sample.begin
    let chat = Chat(url: server, user: "ann") {
        do {
            return try await backend.chatToken()
        } catch is SessionExpired {
            throw RoostError(.unauthenticated, "The session has expired.")
        }
    }
    chat.start()
    for await case .failed(let error) in chat.connection.updates where error.code == .unauthenticated { showSignIn() }
    // sample.end
}

private struct SessionBackend: Sendable {
    func endSession(on device: DeviceID) async throws {}
}

private func signOut(_ chat: Chat, backend: SessionBackend) async throws {
    // sample.begin
    let device = try await chat.deviceId
    do {
        try await chat.logOut(signingOutDevice: true)
        try await backend.endSession(on: device)
    } catch let unsent as UnsentOperations {
        print("\(unsent.count) messages and changes haven't been sent.")
    } catch let error as RoostError where error.code == .storageNotDeleted {
        print("You are logged out, and your messages are still on this device.")
        try await backend.endSession(on: device)
    }
    // sample.end
}
