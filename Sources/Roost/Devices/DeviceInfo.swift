import Foundation
import RoostAPI

/// How this device appears in the user's list of devices (``Chat/devices()``). Only the user sees it.
public struct DeviceInfo: Hashable, Sendable {
    /// The user's name for the device. Longer names are truncated to `Limits.deviceNameLength` characters, and runs of combining marks to
    /// `Limits.combiningMarks`.
    public var name: String?
    /// The operating system. Longer names are truncated to `Limits.platformLength` characters.
    public var platform: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(name: String? = nil, platform: String? = nil) {
        self.name = name
        self.platform = platform
    }

    /// This device, with its network name and operating system.
    public static var current: DeviceInfo { DeviceInfo(name: hostName, platform: platform) }

    /// The description sent to the server.
    func description(_ id: DeviceID) -> DeviceDescription {
        DeviceDescription(
            deviceId: id, name: name.map { Self.shortened($0, to: Limits.deviceNameLength) },
            platform: platform.map { Self.shortened($0, to: Limits.platformLength) })
    }

    /// Shortens the text to what the server accepts: a name must not make it refuse the connection.
    private static func shortened(_ text: String, to length: Int) -> String {
        var kept = String.UnicodeScalarView()
        var marks = 0
        for scalar in text.unicodeScalars where scalar != "\0" {
            marks = isMark(scalar) ? marks + 1 : 0
            if marks <= Limits.combiningMarks { kept.append(scalar) }
        }
        var short = String(String(kept).prefix(length))
        while short.utf8.count > length * Limits.bytesPerCharacterMax { short.removeLast() }
        return short
    }

    /// Whether the server may count the scalar in a run of combining marks. The server counts only marks with a combining class, so it never counts
    /// more than this does.
    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }

    /// The host name without its domain, from the system alone: `ProcessInfo.hostName` may wait for the network.
    private static var hostName: String? {
        var bytes = [CChar](repeating: 0, count: 256)
        // The last byte stays 0: the system may not terminate a truncated name.
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return nil }
        let letters = bytes.map(UInt8.init(bitPattern:)).prefix { $0 != 0 && $0 != UInt8(ascii: ".") }
        let name = String(decoding: letters, as: UTF8.self)
        return name.isEmpty || name == "localhost" ? nil : name
    }

    private static var platform: String {
        #if os(iOS)
        "iOS"
        #elseif os(macOS)
        "macOS"
        #elseif os(watchOS)
        "watchOS"
        #elseif os(tvOS)
        "tvOS"
        #elseif os(visionOS)
        "visionOS"
        #elseif os(Linux)
        "Linux"
        #elseif os(Windows)
        "Windows"
        #else
        "other"
        #endif
    }
}
