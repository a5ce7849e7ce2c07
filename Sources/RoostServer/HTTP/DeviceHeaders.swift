import HTTPTypes
import NIOHTTP1
import RoostAPI

/// The headers that name a client's device in the request that opens a socket. They are for clients that send their token in that request too, and
/// so no `authenticate` frame that could name it.
enum DeviceHeaders {
    static let id = "Roost-Device"
    static let name = "Roost-Device-Name"
    static let platform = "Roost-Device-Platform"
    private static let all = [id, name, platform]

    /// Returns the device that a request for a socket names; nil if it names none.
    ///
    /// - Throws: `invalid_argument` for a name without an id, a device without a token in the same request, and a header that occurs more than once
    ///   or isn't percent-encoded UTF-8; `limit_exceeded` for one that is too long.
    static func device(in headers: HTTPHeaders) throws(RoostError) -> DeviceDescription? {
        try device(hasToken: BearerToken.read(from: headers) != nil) { headers[$0] }
    }

    /// - Throws: As ``device(in:)-(HTTPHeaders)``.
    static func device(in fields: HTTPFields) throws(RoostError) -> DeviceDescription? {
        try device(hasToken: BearerToken.read(fields[.authorization]) != nil) { name in
            HTTPField.Name(name).map { fields[values: $0] } ?? []
        }
    }

    /// Throws if a request that doesn't open a socket names a device.
    static func requireNoDeviceHeaders(in fields: HTTPFields) throws(RoostError) {
        for name in all {
            guard let field = HTTPField.Name(name), fields.contains(field) else { continue }
            throw .invalidArgument(name, "is only accepted in the request that opens a socket")
        }
    }

    private static func device(
        hasToken: Bool, _ values: (String) -> [String]
    ) throws(RoostError) -> DeviceDescription? {
        let (id, name) = (try text(of: id, values), try text(of: name, values))
        let platform = try text(of: platform, values)
        guard let id else {
            guard name == nil, platform == nil else { throw .invalidArgument(Self.id, "is missing: it identifies the device") }
            return nil
        }
        guard hasToken else {
            throw .invalidArgument(Self.id, "requires Authorization; without it, the authenticate frame names the device")
        }
        let device = DeviceDescription(deviceId: DeviceID(id), name: name, platform: platform)
        try device.deviceId.validateLength(field: Self.id)
        try Limits.check(name, length: Limits.deviceNameLength, field: Self.name)
        try Limits.check(platform, length: Limits.platformLength, field: Self.platform)
        return device
    }

    private static func text(of header: String, _ values: (String) -> [String]) throws(RoostError) -> String? {
        guard let value = try HeaderText.single(values(header), of: header) else { return nil }
        return try HeaderText.decoded(value, of: header)
    }
}
