import Crypto
import Foundation
import RoostAPI

/// A short key for a long text: SHA-256 in hexadecimal digits.
enum Fingerprint {
    static func of(_ text: String) -> String {
        SHA256.hash(data: Data(text.utf8)).map { String($0, radix: 16, width: 2) }.joined()
    }
}
