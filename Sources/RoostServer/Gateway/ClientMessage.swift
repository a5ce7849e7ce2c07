import Foundation
import NIOCore
import RoostAPI
import RoostCore

/// A message from a client, decoded.
enum ClientMessage {
    case authenticate(AuthenticateFrame.Credentials)
    /// An authenticate frame that can't be read.
    case unreadableCredentials(RoostError)
    case call(Int64, any Handled, key: IdempotencyKey? = nil)
    /// A call that can be answered, though not carried out.
    case refused(Int64, RoostError)
    /// A message that can't be answered.
    case malformed(RoostError)

    /// The most bytes of fields that are decoded separately from their frame.
    private static let decodedApartMax = 4096

    init(_ message: ByteBuffer) {
        let bytes = Array(message.readableBytesView)
        do {
            let scan = try JSONScan(bytes)
            guard let problem = scan.problem else {
                self = try ClientMessage(plainly: bytes) ?? ClientMessage(byFoundation: bytes)
                return
            }
            // Foundation can't read deeply nested values, nor every number.
            let frame: ClientMessage?
            if problem.kind == .tooDeep {
                frame = CallEnvelope(bytes, limitsFields: false).map { .refused($0.call, .internalFailure) }
            } else {
                frame = try? ClientMessage(byFoundation: bytes)
            }
            self = (frame ?? .malformed(.internalFailure)).refused(for: problem)
        } catch let error as RoostError where error.code == .limitExceeded {
            // The rest of the frame isn't looked at.
            self = CallEnvelope.firstCall(in: bytes).map { .refused($0, error) } ?? .malformed(error)
        } catch {
            self = .malformed(RoostError(decoding: error))
        }
    }

    /// The first message of a socket. Only an authenticate frame is decoded: all others are answered in the same way.
    init(first message: ByteBuffer) {
        let bytes = Array(message.readableBytesView)
        do {
            let scan = try JSONScan(bytes)
            self = try JSONDecoder().decode(DecodedFirst.self, from: Data(bytes)).frame
            if let problem = scan.problem { self = refused(for: problem) }
        } catch let error as RoostError {
            self = .malformed(error)
        } catch {
            self = .malformed(RoostError(decoding: error))
        }
    }

    /// A call that is written plainly, as clients do, and can be carried out; nil for everything else.
    ///
    /// - Parameter bytes: JSON in which nothing is ambiguous.
    init?(plainly bytes: [UInt8]) {
        guard let envelope = CallEnvelope(bytes), let entry = OperationTable.named(envelope.operation) else { return nil }
        var key: IdempotencyKey?
        if let text = envelope.key {
            guard let read = try? IdempotencyKey(text) else { return nil }
            key = read
        }
        if let operation = envelope.plainOperation(in: bytes) {
            self = .call(envelope.call, operation, key: key)
            return
        }
        // Long fields take so long to decode that the rest of the frame doesn't matter, and invalid ones would be decoded twice.
        if let fields = envelope.fields, fields.count > Self.decodedApartMax { return nil }
        // Errors in an operation are reported by the general path.
        let fields = envelope.fields.map { Data(bytes[$0]) } ?? Data("{}".utf8)
        guard let operation = fields.count == 2 ? entry.withoutFields : try? entry.decode(from: fields) else { return nil }
        self = .call(envelope.call, operation, key: key)
    }

    /// A message that Foundation reads as a whole, however it is written. What the server reads without Foundation must mean the same.
    ///
    /// - Parameter bytes: JSON in which nothing is ambiguous.
    init(byFoundation bytes: [UInt8]) throws { self = try JSONDecoder().decode(Decoded.self, from: Data(bytes)).frame }

    /// Returns the refusal of a frame that can't be stored exactly: with two numbers for one call, say, it is unclear which is meant.
    private func refused(for problem: JSONScan.Problem) -> ClientMessage {
        let path = problem.path
        let error = problem.error(at: path.count > 1 && path.first == "with" ? Array(path.dropFirst()) : path)
        guard path.count > 1 else { return .malformed(error) }
        return switch self {
        case .call(let call, _, _), .refused(let call, _): .refused(call, error)
        case .authenticate, .unreadableCredentials: .unreadableCredentials(error)
        case .malformed: .malformed(error)
        }
    }

    /// The frame in JSON. A separate `Decodable`, so the operation is decoded in the same pass.
    private struct Decoded: Decodable {
        let frame: ClientMessage

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: FieldKey.self)
            if let credentials = DecodedFirst.credentials(in: container) {
                frame = credentials
                return
            }
            guard container.contains(FieldKey("call")) else {
                frame = .malformed(.invalidArgument("call", "is missing: a frame must be an authenticate or a call"))
                return
            }
            guard let call = try? container.decode(Int64.self, forKey: FieldKey("call")) else {
                frame = .malformed(.invalidArgument("call", "must be a whole number of at most 64 bits"))
                return
            }
            do {
                try container.refuseUnknown(known: ["call", "operation", IdempotencyKey.member, "with"])
                let name = try container.decode(String.self, forKey: FieldKey("operation"))
                guard let entry = OperationTable.named(name) else {
                    frame = .refused(call, .unknownOperation(name))
                    return
                }
                // An operation without fields may omit the empty object.
                let fields =
                    container.contains(FieldKey("with")) ? try container.superDecoder(forKey: FieldKey("with")) : nil
                let operation = try fields.map { try entry.decode(from: $0) } ?? entry.decode(from: Data("{}".utf8))
                let key = try container.decodeIfPresent(String.self, forKey: FieldKey(IdempotencyKey.member))
                frame = .call(call, operation, key: try key.map { try IdempotencyKey($0) })
            } catch {
                frame = .refused(call, RoostError(decoding: error))
            }
        }

    }

    /// A frame whose credentials alone are decoded.
    private struct DecodedFirst: Decodable {
        let frame: ClientMessage

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: FieldKey.self)
            frame = Self.credentials(in: container) ?? .malformed(.invalidArgument("authenticate", "is missing"))
        }

        /// An authenticate frame, whether it can be read or not; nil for any other.
        static func credentials(in container: KeyedDecodingContainer<FieldKey>) -> ClientMessage? {
            let key = FieldKey("authenticate")
            guard container.contains(key) else { return nil }
            do {
                try container.refuseUnknown(known: [key.stringValue])
                let credentials = try container.decode(AuthenticateFrame.Credentials.self, forKey: key)
                let members = try container.nestedContainer(keyedBy: FieldKey.self, forKey: key)
                try members.refuseUnknown(known: ["client", "device", "token"])
                if credentials.device != nil {
                    let device = try members.nestedContainer(keyedBy: FieldKey.self, forKey: FieldKey("device"))
                    try device.refuseUnknown(at: "device.", known: ["deviceId", "name", "platform"])
                }
                return .authenticate(credentials)
            } catch {
                return .unreadableCredentials(RoostError(decoding: error))
            }
        }
    }
}

extension KeyedDecodingContainer<FieldKey> {
    /// Otherwise a misspelt `with` would make an operation without fields.
    ///
    /// - Parameter path: The path to the members, followed by a full stop.
    fileprivate func refuseUnknown(at path: String = "", known: [String]) throws {
        for key in allKeys where !known.contains(key.stringValue) {
            throw RoostError.invalidArgument(
                path + key.stringValue, "is not a member of this frame; it has: \(known.joined(separator: ", "))")
        }
    }
}
