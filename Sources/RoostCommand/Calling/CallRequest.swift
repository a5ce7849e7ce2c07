import Foundation
import RoostAPI

/// An operation as a request over HTTP: the fields in braces in the path; the rest in the query of a GET or DELETE, otherwise in a JSON body.
struct CallRequest: Hashable {
    let method: String
    /// The path with the query.
    let target: String
    let body: [UInt8]?

    init<Call: RoostAPI.Operation>(_ operation: Call) throws {
        var fields: [String: JSONValue] = [:]
        if case .object(let all) = try JSONDecoder().decode(JSONValue.self, from: Data(try JSONWriter.bytes(of: operation))) {
            fields = all.filter { $0.value != .null }
        }
        var segments: [String] = []
        for segment in Call.path.split(separator: "/") {
            let name = segment.hasPrefix("{") ? String(segment.dropFirst().dropLast()) : nil
            segments.append(name.flatMap { fields.removeValue(forKey: $0) }.map(Self.encoded) ?? String(segment))
        }
        let path = "/" + segments.joined(separator: "/")
        method = Call.method.rawValue
        switch Call.method {
        case .get, .delete:
            let pairs = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\(Self.encoded($0.value))" }
            (target, body) = (pairs.isEmpty ? path : path + "?" + pairs.joined(separator: "&"), nil)
        case .post, .put, .patch: (target, body) = (path, try JSONWriter.bytes(of: JSONValue.object(fields)))
        }
    }

    /// A value in a URL. A list's values are separated by commas, which are encoded inside values.
    private static func encoded(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): encoded(text)
        case .integer(let number): String(number)
        case .number(let number): String(number)
        case .boolean(let flag): String(flag)
        case .array(let values): values.map(encoded).joined(separator: ",")
        case .null, .object: ""
        }
    }

    /// Every byte that isn't unreserved in a URL (RFC 3986), percent-encoded.
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { result, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default: result += ["%", String(digits[Int(byte >> 4)]), String(digits[Int(byte & 15)])].joined()
            }
        }
    }
}
