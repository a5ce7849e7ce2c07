import Crypto
import Foundation

/// A short key for a long text: SHA-256 in hexadecimal digits.
enum Fingerprint {
    static func of(_ text: String) -> String {
        SHA256.hash(data: Data(text.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }
}
