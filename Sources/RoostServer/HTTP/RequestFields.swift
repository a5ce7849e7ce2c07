import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import RoostAPI
import RoostCore

/// Reads an operation's fields from a request: those in braces from the path; for GET and DELETE the rest from the query; for the other methods the
/// rest from a JSON body.
enum RequestFields {
    /// Returns the fields, and the size of the body that they came in.
    static func read(
        _ request: Request, entry: OperationTable.Entry
    ) async throws -> (fields: [String: JSONValue], bodySizeBytes: Int) {
        func schema(of name: String) -> Schema? { entry.schema.fields.first { $0.name == name }?.schema }
        var fields: [String: JSONValue] = [:]
        var bodySizeBytes = 0
        switch entry.type.method {
        case .get, .delete:
            for (name, values) in try query(of: request) { fields[name] = try value(values, for: name, schema(of: name)) }
            guard try await collect(request).readableBytes == 0 else {
                throw RoostError.invalidArgument("body", "isn't read here: the fields go in the path and the query")
            }
        case .post, .put, .patch:
            guard request.uri.query == nil else {
                throw RoostError.invalidArgument("query", "isn't read here: the fields go in the body")
            }
            (fields, bodySizeBytes) = try await body(of: request)
        }
        for header in RequestHeaders.ofFields { try header.read(request, into: &fields, entry: entry) }
        for (name, text) in PathTable.parameters(of: request.uri.path, pattern: entry.type.path) {
            guard fields[name] == nil else { throw RoostError.invalidArgument(name, "is already in the path") }
            fields[name] = try value([text], for: name, schema(of: name))
        }
        return (fields, bodySizeBytes)
    }

    /// Returns the query's values by name, still percent-encoded: a comma that separates values is unencoded.
    private static func query(of request: Request) throws(RoostError) -> [String: [Substring]] {
        var result: [String: [Substring]] = [:]
        guard let query = request.uri.query else { return result }
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first else { continue }
            result[try decoded(first, of: String(first)), default: []].append(parts.count > 1 ? parts[1] : "")
        }
        return result
    }

    private static func decoded(_ text: Substring, of name: String) throws(RoostError) -> String {
        guard let decoded = text.removingPercentEncoding else {
            throw .invalidArgument(name, "must be percent-encoded UTF-8: each % begins an escape of two hexadecimal digits")
        }
        try CombiningMarks.requireWithinLimit(in: decoded, field: name)
        return decoded
    }

    /// Reads a body into memory of the announced size: a buffer that grows by doubling leaves all its former sizes with the allocator, and
    /// untouched memory costs nothing.
    ///
    /// Throws if the body is incomplete. The refusal was already sent and counted where the connection's bytes are read.
    private static func collect(_ request: Request) async throws -> ByteBuffer {
        let length = request.headers[.contentLength].flatMap { Int($0) }
        var body = ByteBuffer()
        body.reserveCapacity(min(max(0, length ?? 0), Limits.bodySizeBytes))
        do {
            for try await var part in request.body {
                guard body.readableBytes + part.readableBytes <= Limits.bodySizeBytes else {
                    throw RoostError.limitExceeded("body", limit: Limits.bodySizeBytes, unit: "bytes")
                }
                body.writeBuffer(&part)
            }
        } catch is HTTPParserError {
            throw brokenOff
        }
        // The end of a connection may end the stream of its bytes without an error.
        guard length == nil || length == body.readableBytes else { throw brokenOff }
        return body
    }

    private static let brokenOff = HTTPError(.badRequest, message: "The request's body is incomplete.")

    private static func body(of request: Request) async throws -> (fields: [String: JSONValue], sizeBytes: Int) {
        try checkMediaType(of: request)
        let buffer = try await collect(request)
        guard buffer.readableBytes > 0 else { return ([:], 0) }
        let bytes = Array(buffer.readableBytesView)
        guard String(validating: bytes, as: UTF8.self) != nil else { throw RoostError(.invalidArgument, "The body is not UTF-8.") }
        // Checked first, since Foundation gives up on deep nesting.
        try JSONScan(bytes).requireExact()
        guard case .object(let fields) = try JSONDecoder().decode(JSONValue.self, from: Data(bytes)) else {
            throw RoostError(.invalidArgument, "The body must be a JSON object.")
        }
        return (fields, bytes.count)
    }

    /// Checks that a body with a media type is JSON. A body without one is read as JSON.
    private static func checkMediaType(of request: Request) throws {
        // A request without either header has no body (RFC 9112, 6.3).
        let length = request.headers[.contentLength].flatMap { Int($0) } ?? 0
        guard let type = request.headers[.contentType], length > 0 || request.headers[.transferEncoding] != nil else { return }
        let parts = type.lowercased().split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
        let isUTF8 = parts.dropFirst().allSatisfy {
            !$0.hasPrefix("charset=") || ["charset=utf-8", "charset=\"utf-8\""].contains($0)
        }
        guard parts.first == "application/json", isUTF8 else {
            throw Problem.Refused(
                problem: Problem(.invalidArgument("Content-Type", "must be application/json, in UTF-8"), status: 415))
        }
    }

    /// Returns percent-encoded text as the JSON that the field's schema requires.
    private static func value(_ texts: [Substring], for name: String, _ schema: Schema?) throws -> JSONValue {
        guard let first = texts.first else { return .null }
        if case .array(let element) = schema {
            let parts = texts.flatMap { $0.isEmpty ? [] : $0.split(separator: ",", omittingEmptySubsequences: false) }
            return .array(try parts.map { try value([$0], for: name, element) })
        }
        let text = try decoded(first, of: name)
        switch schema {
        case _ where texts.count > 1:
            throw RoostError.invalidArgument(name, "is given more than once")
        case .integer:
            guard let number = Int64(text) else { throw RoostError.invalidArgument(name, "must be a whole number") }
            return .integer(number)
        case .number:
            guard let number = Double(text), number.isFinite else { throw RoostError.invalidArgument(name, "must be a number") }
            return .number(number)
        case .boolean:
            guard let flag = Bool(text) else { throw RoostError.invalidArgument(name, "must be true or false") }
            return .boolean(flag)
        default:
            return .string(text)
        }
    }
}
