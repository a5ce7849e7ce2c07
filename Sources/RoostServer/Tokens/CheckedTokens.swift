import Crypto
import Foundation
import Synchronization

/// The claims of tokens whose signatures one set of keys has found valid, so that a client that shows its token with each request has its
/// signature checked once.
///
/// Nothing but reading the token and checking its signature is saved: when it expires, what the rules ask of it and whether it was revoked is
/// checked at each use. A set of keys that replaces another has a `CheckedTokens` of its own, so no token outlives its key, not even one that
/// is being checked at that moment.
///
/// It has digests of the tokens, not the tokens. It holds two generations: when the younger one is full it becomes the older, whose tokens are
/// dropped unless they were used since.
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

    /// Returns the claims of a token; of an unknown one those that the body finds.
    func claims(of token: String, _ check: () throws(TokenRefusal) -> TokenKeys.Claims) throws(TokenRefusal) -> TokenKeys.Claims {
        // Longer ones are refused, and aren't worth a digest.
        guard token.utf8.count <= TokenText.sizeBytesMax else { return try check() }
        let digest = SHA256.hash(data: Data(token.utf8))
        let (young, old) = state.withLock { ($0.younger[digest], $0.older[digest]) }
        if let young { return young }
        let claims = if let old { old } else { try check() }
        state.withLock { state in
            // Texts of the claims have about the size of the token; the rest is the entry and its place in the table.
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

    /// How many tokens it knows, those of both generations twice.
    var count: Int { state.withLock { $0.younger.count + $0.older.count } }
}
