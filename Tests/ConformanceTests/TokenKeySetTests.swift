import Foundation
import RoostTestSupport
import Testing

@testable import RoostServer

/// The size of a file of keys.
@Suite struct TokenKeySetTests {
    /// A set of this many keys, with names of this many characters, in a file of this many bytes.
    private static func file(keys count: Int = 1, nameLength: Int = 3, sizeBytes: Int? = nil) -> Data {
        let secret = TokenForge.base64(Data(repeating: 7, count: 32))
        let keys = (0..<count).map { number in
            let name = String(repeating: "k", count: nameLength - 3) + "\(number + 100)"
            return #"{"kty":"oct","kid":"\#(name)","alg":"HS256","k":"\#(secret)"}"#
        }
        let text = #"{"keys":[\#(keys.joined(separator: ","))]}"#
        return Data((text + String(repeating: " ", count: max(0, (sizeBytes ?? 0) - text.utf8.count))).utf8)
    }

    /// Why a file can't be used; nil if it can.
    private func refusal(of file: Data) async -> String? {
        do {
            _ = try await TokenKeySet(file)
            return nil
        } catch {
            return error.description
        }
    }

    @Test("a file of keys has 100 keys, names of 128 characters and 262,144 bytes at most: at each, and one over")
    func limits() async {
        let fitting = [Self.file(keys: 100), Self.file(nameLength: 128), Self.file(sizeBytes: 262_144)]
        for file in fitting { #expect(await refusal(of: file) == nil) }
        #expect(await refusal(of: Self.file(keys: 101)) == "it has more than 100 keys")
        #expect(await refusal(of: Self.file(nameLength: 129)) == "key 1: kid must have 1 to 128 characters")
        #expect(await refusal(of: Self.file(sizeBytes: 262_145)) == "it has more than 262144 bytes")
    }
}
