import Foundation
import NIOCore
import RoostAPI
import RoostCore

/// A message from a client, decoded.
enum IncomingFrame {
    case authenticate(AuthenticateFrame.Credentials)
    case call(Int64, any Handled)
    /// A call that can be answered, though not carried out.
    case refused(Int64, RoostError)
    /// Nothing that could be answered.
    case malformed(RoostError)

    init(_ message: ByteBuffer) {
        let data = message.withUnsafeReadableBytes { Data($0) }
        do {
            try JSONBudget.check(data)
            self = try JSONDecoder().decode(Decoded.self, from: data).frame
        } catch {
            self = .malformed(RoostError(decoding: error))
        }
    }

    /// The frame as JSON has it. A `Decodable` of its own, so that the operation is decoded in the same pass.
    private struct Decoded: Decodable {
        let frame: IncomingFrame

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: FieldKey.self)
            if container.contains(FieldKey("authenticate")) {
                frame = .authenticate(try container.decode(AuthenticateFrame.Credentials.self, forKey: FieldKey("authenticate")))
                return
            }
            guard let call = try container.decodeIfPresent(Int64.self, forKey: FieldKey("call")) else {
                frame = .malformed(.invalidArgument("call", "is missing: a frame is an authenticate or a call"))
                return
            }
            do {
                let name = try container.decode(String.self, forKey: FieldKey("operation"))
                guard let entry = OperationTable.named(name) else {
                    frame = .refused(call, .unknownOperation(name))
                    return
                }
                // An operation without fields may leave the empty object out.
                let fields =
                    container.contains(FieldKey("with")) ? try container.superDecoder(forKey: FieldKey("with")) : nil
                frame = .call(call, try fields.map { try entry.decode(from: $0) } ?? entry.decode(from: Data("{}".utf8)))
            } catch {
                frame = .refused(call, RoostError(decoding: error))
            }
        }
    }
}

extension OperationTable.Entry {
    /// Decodes the operation from a JSON object of its fields.
    func decode(from json: Data) throws -> any Handled {
        let decoder = JSONDecoder()
        decoder.userInfo[DecodedOperation.entry] = self
        return try decoder.decode(DecodedOperation.self, from: json).operation
    }

    /// An operation whose type is only known when it is decoded.
    private struct DecodedOperation: Decodable {
        static let entry = CodingUserInfoKey(rawValue: "entry").unsafelyUnwrapped
        let operation: any Handled

        init(from decoder: any Decoder) throws {
            guard let entry = decoder.userInfo[Self.entry] as? OperationTable.Entry else { throw RoostError.internalFailure }
            operation = try entry.decode(from: decoder)
        }
    }

    /// Decodes the operation, refuses fields that it doesn't have, and checks its limits.
    func decode(from decoder: any Decoder) throws -> any Handled {
        for key in try decoder.container(keyedBy: FieldKey.self).allKeys where !fields.contains(key.stringValue) {
            let known = fields.isEmpty ? "it has none" : "it has: " + fields.sorted().joined(separator: ", ")
            throw RoostError.invalidArgument(key.stringValue, "is not a field of \(type.name); \(known)")
        }
        do {
            let operation = try type.init(from: decoder)
            try operation.validate()
            return operation
        } catch let error where !(error is DecodingError || error is RoostError) {
            // Foundation reads numbers late, and then throws an error of its own that names no field.
            throw unreadableNumber(in: decoder) ?? RoostError(.invalidArgument, "A number can't be read.")
        }
    }

    /// The field whose number can't be read: 1.5 where a whole one belongs, or one with too many digits.
    private func unreadableNumber(in decoder: any Decoder) -> RoostError? {
        guard let container = try? decoder.container(keyedBy: FieldKey.self) else { return nil }
        let field = schema.fields.first { field in
            guard field.schema == .integer, container.contains(FieldKey(field.name)) else { return false }
            return (try? container.decode(Int64.self, forKey: FieldKey(field.name))) == nil
        }
        return field.map { .invalidArgument($0.name, "must be a whole number of at most 64 bits") }
    }
}

extension RoostError {
    static func unknownOperation(_ name: String) -> RoostError {
        let known = OperationTable.handled.map { $0.name }.min { $0.editDistance(to: name) < $1.editDistance(to: name) }
        let suggestion = known.map { " Did you mean \($0)?" } ?? ""
        return RoostError(.unknownOperation, "There is no such operation.\(suggestion)", field: "operation")
    }

    /// What a client is told of input that doesn't decode: which field, and what it should have been.
    init(decoding error: any Error) {
        switch error {
        case let error as RoostError:
            self = error
        case DecodingError.keyNotFound(let key, let context):
            self = .invalidArgument(Self.field(context.codingPath + [key]), "is missing")
        case DecodingError.typeMismatch(let type, let context):
            self = .invalidArgument(Self.field(context.codingPath), "must be \(Self.name(of: type))")
        case DecodingError.valueNotFound(let type, let context):
            self = .invalidArgument(Self.field(context.codingPath), "must be \(Self.name(of: type)), not null")
        case DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty:
            self = RoostError(.invalidArgument, "This is not JSON.")
        case DecodingError.dataCorrupted(let context):
            self = .invalidArgument(Self.field(context.codingPath), context.debugDescription)
        default:
            self = RoostError(.invalidArgument, "This can't be read.")
        }
    }

    private static func field(_ path: [any CodingKey]) -> String {
        let names = path.map(\.stringValue)
        return (names.first == "with" ? names.dropFirst() : names[...]).joined(separator: ".")
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Int.Type, is Int64.Type: "a whole number"
        case is Double.Type: "a number"
        case is [Any].Type: "an array"
        case is [String: Any].Type: "an object"
        default: "of another type"
        }
    }
}

extension String {
    /// How many letters must be put in, taken out or changed to turn one word into another: for suggestions.
    package func editDistance(to other: String) -> Int {
        let word = Array(other.prefix(64).utf8)
        var row = Array(0...word.count)
        for (i, letter) in utf8.prefix(64).enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for j in word.indices {
                let changed = diagonal + (word[j] == letter ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = Swift.min(changed, row[j] + 1, diagonal + 1)
            }
        }
        return row[word.count]
    }
}
