import Foundation
import Testing

/// What an app's privacy report contains for the SDK.
@Suite("Devices: the privacy manifest")
struct PrivacyManifestTests {
    private struct Manifest: Decodable {
        struct Collected: Decodable, Hashable {
            var type: String
            var isLinked: Bool
            var isForTracking: Bool
            var purposes: [String]

            private enum CodingKeys: String, CodingKey {
                case type = "NSPrivacyCollectedDataType"
                case isLinked = "NSPrivacyCollectedDataTypeLinked"
                case isForTracking = "NSPrivacyCollectedDataTypeTracking"
                case purposes = "NSPrivacyCollectedDataTypePurposes"
            }
        }
        var isForTracking: Bool
        var collected: [Collected]

        private enum CodingKeys: String, CodingKey {
            case isForTracking = "NSPrivacyTracking"
            case collected = "NSPrivacyCollectedDataTypes"
        }
    }

    @Test("The manifest names what the SDK sends to the app's server: messages, the user's id, and the id of the device")
    func collected() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let file = root.deletingLastPathComponent().appending(path: "Sources/Roost/PrivacyInfo.xcprivacy")
        let manifest = try PropertyListDecoder().decode(Manifest.self, from: Data(contentsOf: file))
        let types = ["EmailsOrTextMessages", "UserID", "DeviceID"]
        #expect(!manifest.isForTracking)
        #expect(
            manifest.collected
                == types.map {
                    Manifest.Collected(
                        type: "NSPrivacyCollectedDataType\($0)", isLinked: true, isForTracking: false,
                        purposes: ["NSPrivacyCollectedDataTypePurposeAppFunctionality"])
                })
    }
}
