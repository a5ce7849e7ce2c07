import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
package import RoostAPI

/// A refusal as an HTTP body: RFC 9457, with Roost's code and the fields of the error in addition to the standard members.
package struct Problem: Codable {
    static let mediaType = "application/problem+json"

    /// A refusal whose status is more specific than its code.
    struct Refused: Error {
        let problem: Problem
    }

    let type: String
    let title: String
    let status: Int
    let code: RoostError.Code
    let detail: String
    let field: String?
    let limit: Int64?
    let rule: String?
    let until: Timestamp?
    let retryAfterMilliseconds: Int64?

    init(_ error: RoostError, status: Int? = nil) {
        type = "urn:roost:error:\(error.code.rawValue)"
        title = error.code.rawValue.replacingOccurrences(of: "_", with: " ").capitalized
        self.status = status ?? error.code.httpStatus ?? 500
        code = error.code
        detail = error.message
        field = error.field
        limit = error.limit
        rule = error.rule
        until = error.until
        retryAfterMilliseconds = error.retryAfterMilliseconds
    }

    /// Reads a refusal of a server that may be newer, as far as this version knows it (``LenientError``).
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        /// A field that is absent or can't be read doesn't affect the others.
        func member<Value: Decodable>(_ key: CodingKeys) -> Value? { try? container.decodeIfPresent(Value.self, forKey: key) }
        type = try container.decode(String.self, forKey: .type)
        title = try container.decode(String.self, forKey: .title)
        status = try container.decode(Int.self, forKey: .status)
        let error = RoostError(
            .notPermitted, try container.decode(String.self, forKey: .detail), field: member(.field), limit: member(.limit),
            rule: member(.rule), until: member(.until), retryAfterMilliseconds: member(.retryAfterMilliseconds))
        let refusal = LenientError(code: try container.decode(String.self, forKey: .code), error).value
        code = refusal.code
        detail = refusal.message
        field = refusal.field
        limit = refusal.limit
        rule = refusal.rule
        until = refusal.until
        retryAfterMilliseconds = refusal.retryAfterMilliseconds
    }

    /// The refusal as a socket would send it.
    package var refusal: RoostError {
        RoostError(
            code, detail, field: field, limit: limit, rule: rule, until: until, retryAfterMilliseconds: retryAfterMilliseconds)
    }

    /// The document. Strings and numbers always encode.
    var json: [UInt8] { (try? JSONWriter.bytes(of: self)) ?? Array("{}".utf8) }

    /// The headers of any answer that has it as its body.
    var headers: HTTPFields {
        var headers: HTTPFields = [.contentType: Self.mediaType]
        if let retryAfterMilliseconds { headers[.retryAfter] = String((retryAfterMilliseconds + 999) / 1000) }
        if status == 401 { headers[.wwwAuthenticate] = "Bearer" }
        return headers
    }

    var response: Response {
        var headers = headers
        // The body is too large to be read, so the connection closes after the answer.
        if code == .limitExceeded, field == "body", limit == Int64(Limits.bodySizeBytes) { headers[.connection] = "close" }
        return Response(
            status: .init(code: status), headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: json)))
    }
}

/// Turns every error into a problem document, including those of the router and of the HTTP layer.
struct ProblemMiddleware<Context: RequestContext>: RouterMiddleware {
    let logger: Logger

    func handle(_ request: Request, context: Context, next: (Request, Context) async throws -> Response) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as RoostError {
            return Problem(error).response
        } catch let refused as Problem.Refused {
            return refused.problem.response
        } catch let error as HTTPError {
            switch error.status {
            case .notFound:
                return Problem(RoostError(.unknownOperation, "There is no operation with this method and path. See /openapi.json."))
                    .response
            case .contentTooLarge:
                return Problem(.limitExceeded("body", limit: Limits.bodySizeBytes, unit: "bytes")).response
            default:
                return Problem(RoostError(.invalidArgument, error.body ?? "This request can't be read."), status: error.status.code)
                    .response
            }
        } catch {
            logger.error("A request failed.", metadata: ["error": "\(error)"])
            return Problem(.internalFailure).response
        }
    }
}
