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
