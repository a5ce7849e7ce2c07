import Foundation
import RoostAPI

/// The user that a token names. Nothing is checked here: that is the server's job.
struct TokenOwner: Hashable {
    let user: UserID
    let role: AppRole

    /// Nil for anything but a JSON Web Token.
    init?(_ token: String) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var text = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
        while !text.count.isMultiple(of: 4) { text += "=" }
        guard let data = Data(base64Encoded: text), let claims = try? JSONDecoder().decode(Claims.self, from: data) else {
            return nil
        }
        user = UserID(claims.sub)
        role = claims.role.flatMap(AppRole.init(rawValue:)) ?? .user
    }

    private struct Claims: Decodable {
        let sub: String
        let role: String?
    }
}
