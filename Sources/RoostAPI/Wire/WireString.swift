/// A string with its own type for its meaning: the id of a channel, the name of a role.
public protocol WireString: RawRepresentable, Codable, Hashable, Comparable, Sendable, SchemaDescribed, CustomStringConvertible,
    ExpressibleByStringInterpolation, WireWritable
where RawValue == String {
    /// Wraps any string. Operations check the limits, so that an error can name the field.
    init(rawValue: String)
}

extension WireString {
    /// Wraps any string, as `init(rawValue:)` does.
    public init(_ string: String) { self.init(rawValue: string) }
    public init(stringLiteral value: String) { self.init(rawValue: value) }
    public init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(String.self))
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
    public func write(to json: inout JSONBytes) { json.string(rawValue) }
    public var description: String { rawValue }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
