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
    }
    // sample.end
}
