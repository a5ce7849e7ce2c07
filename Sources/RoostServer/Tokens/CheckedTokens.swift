import Crypto
import Foundation
import Synchronization

/// The claims of tokens whose signatures one set of keys has found valid: a client that sends its token with each request has the signature checked
/// once.
///
/// Only parsing and the signature check are saved: expiry, the rules and revocation are checked at each use. A set of keys that replaces another
/// has its own `CheckedTokens`, so no token outlives its key, not even one that is being checked at that moment.
///
/// It stores digests of the tokens, not the tokens, in two generations: when the younger one is full it becomes the older one, and the tokens of
/// the previous older one are dropped unless they were used since.
final class CheckedTokens: Sendable {
    /// The size of both generations together.
    static let sizeBytesMax = 2 << 20

    private struct State {
        var younger: [SHA256Digest: TokenKeys.Claims] = [:]
        var older: [SHA256Digest: TokenKeys.Claims] = [:]
        var youngerSizeBytes = 0
    }

    private let state = Mutex(State())
    private let generationSizeBytesMax: Int

    init(sizeBytesMax: Int = CheckedTokens.sizeBytesMax) { generationSizeBytesMax = sizeBytesMax / 2 }

    /// Returns the claims of a token; for an unknown token, the claims that the body finds.
    func claims(of token: String, _ check: () throws(TokenRefusal) -> TokenKeys.Claims) throws(TokenRefusal) -> TokenKeys.Claims {
        // Longer tokens are refused, and aren't worth a digest.
        guard token.utf8.count <= TokenText.sizeBytesMax else { return try check() }
        let digest = SHA256.hash(data: Data(token.utf8))
        let (young, old) = state.withLock { ($0.younger[digest], $0.older[digest]) }
        if let young { return young }
        let claims = if let old { old } else { try check() }
        state.withLock { state in
            // The claims' texts are about as large as the token; the rest is the entry and its place in the table.
            state.youngerSizeBytes += token.utf8.count + 256
            if state.youngerSizeBytes > generationSizeBytesMax {
                state.older = state.younger
                state.younger = [:]
                state.youngerSizeBytes = token.utf8.count + 256
            }
            state.younger[digest] = claims
        }
        return claims
    }

    /// The number of known tokens; those in both generations count twice.
    var count: Int { state.withLock { $0.younger.count + $0.older.count } }
}
