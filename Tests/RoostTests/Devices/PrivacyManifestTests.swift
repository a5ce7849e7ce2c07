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
        /// System interfaces of one category, and the reasons for using them.
        struct Accessed: Decodable, Hashable {
            var category: String
            var reasons: [String]

            private enum CodingKeys: String, CodingKey {
                case category = "NSPrivacyAccessedAPIType"
                case reasons = "NSPrivacyAccessedAPITypeReasons"
            }
        }
        var isForTracking: Bool
        var trackingDomains: [String]
        var collected: [Collected]
        var accessed: [Accessed]

        private enum CodingKeys: String, CodingKey {
            case isForTracking = "NSPrivacyTracking"
            case trackingDomains = "NSPrivacyTrackingDomains"
            case collected = "NSPrivacyCollectedDataTypes"
            case accessed = "NSPrivacyAccessedAPITypes"
        }

        /// The SDK's own.
        static func read() throws -> Manifest {
            let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            let file = tests.deletingLastPathComponent().appending(path: "Sources/Roost/PrivacyInfo.xcprivacy")
            return try PropertyListDecoder().decode(Manifest.self, from: Data(contentsOf: file))
        }
    }

    @Test("the manifest names what the SDK sends to the app's server: messages, the user's id, and the id of the device")
    func collected() throws {
        let manifest = try Manifest.read()
        let types = ["EmailsOrTextMessages", "UserID", "DeviceID"]
        #expect(!manifest.isForTracking && manifest.trackingDomains == [])
        #expect(
            manifest.collected
                == types.map {
                    Manifest.Collected(
                        type: "NSPrivacyCollectedDataType\($0)", isLinked: true, isForTracking: false,
                        purposes: ["NSPrivacyCollectedDataTypePurposeAppFunctionality"])
                })
    }

    @Test(
        "the manifest names the one system interface with a required reason that the SDK uses: metadata of files in the app's container"
    )
    func accessed() throws {
        // The App Store refuses apps whose libraries use such an interface without naming it.
        #expect(
            try Manifest.read().accessed
                == [Manifest.Accessed(category: "NSPrivacyAccessedAPICategoryFileTimestamp", reasons: ["C617.1"])])
    }
}
