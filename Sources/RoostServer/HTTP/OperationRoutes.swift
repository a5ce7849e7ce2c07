import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import RoostAPI
import RoostCore

/// Serves every operation of the table over HTTP: its fields come from the path, the query, the body and some headers; its answer is the body.
struct OperationRoutes: Sendable {
    let engine: Engine
    let tokens: TokenVerifier
    let metrics: ServerMetrics
    let security: SecurityLog
    let connections: Connections
    let knownUsers = KnownUsers()

    func add(to router: Router<BasicRequestContext>) {
        for type in OperationTable.handled {
            guard let entry = OperationTable.named(type.name) else { continue }
            for path in PathTable.routes(of: type) {
                router.on(RouterPath(path), method: .init(type.method)) { request, _ in
                    try await respond(to: request, name: type.name, entry: entry)
                }
            }
        }
    }

    /// Serves a request. Its token counts once, by the final result: it may be refused before anything is read, by the engine, or because it
    /// expired while the body arrived.
    private func respond(to request: Request, name: String, entry: OperationTable.Entry) async throws -> Response {
        do {
            let response = try await answer(request, name: name, entry: entry)
            metrics.authenticated(over: .http)
            return response
        } catch let error as RoostError where CloseCode(refusing: error) != nil {
            refused(error, request)
            throw error
        } catch {
            metrics.authenticated(over: .http)
            throw error
        }
    }

    private func answer(_ request: Request, name: String, entry: OperationTable.Entry) async throws -> Response {
        let (caller, account, token) = try await caller(of: request, for: name)
        let operation: any Handled
        let key: IdempotencyKey?
        // A body is read completely before it is decoded, and its decoded form is no smaller.
        var askedBytes = Self.bodySizeBytes(of: request)
        let asked = account.hold(askedBytes)
        do {
            // Many requests may have begun at once, while there was room for each.
            try account.requireRoom(besides: askedBytes)
            key = try RequestHeaders.key(of: request, entry: entry)
            let (fields, bodySizeBytes) = try await RequestFields.read(request, entry: entry)
            // A body in chunks counted as the largest one until here.
            askedBytes = bodySizeBytes
            asked.change(to: bodySizeBytes)
            if fields.isEmpty, let withoutFields = entry.withoutFields {
                operation = withoutFields
            } else {
                operation = try entry.decode(from: Data(try JSONWriter.bytes(of: JSONValue.object(fields))))
            }
        } catch let error as HTTPError {
            throw error
        } catch let error as Problem.Refused {
            metrics.refused(name, error.problem.code)
            throw error
        } catch {
            let refusal = RoostError(decoding: error)
            metrics.refused(name, refusal)
            throw refusal
        }
        // The body may have taken a while to arrive, during which other answers of the user may have used up the budget.
        try tokens.requireUnexpired(token)
        try requireRoom(account, besides: askedBytes, for: name)
        let body = try await engine.answer(
            to: operation, key: key, keyField: RequestHeaders.idempotencyKey, for: caller, callerMemory: account.limitingLedger,
            requestSizeBytes: askedBytes)
        asked.change(to: 0)
        guard !body.bytes.isEmpty else { return Response(status: .noContent, headers: [.cacheControl: "no-store"]) }
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: try self.body(body, account, of: name, isRead: type(of: operation).isReadOnly))
    }

    /// Throws `overloaded`, and counts the refusal, if the budget of the user or of all clients is used up without the request's own bytes.
    private func requireRoom(_ account: RequestAccount, besides ownBytes: Int, for name: String) throws(RoostError) {
        do throws(RoostError) {
            try account.requireRoom(besides: ownBytes)
        } catch {
            metrics.refused(name, error)
            throw error
        }
    }

    /// Returns the announced size of a request's body, or the largest allowed if there is none.
    private static func bodySizeBytes(of request: Request) -> Int {
        if let length = request.headers[.contentLength].flatMap({ Int($0) }) { return min(max(0, length), Limits.bodySizeBytes) }
        return request.headers[.transferEncoding] == nil ? 0 : Limits.bodySizeBytes
    }

    /// Makes a body. An answer that isn't small, which the engine has counted, counts until it is handed to the connection, which then counts it
    /// until it is read.
    ///
    /// A read's answer is dropped if the budget is used up by then: many requests may have begun while there was room. Writes that ran are always
    /// answered.
    private func body(
        _ answer: HeldAnswer, _ account: RequestAccount, of name: String, isRead: Bool
    ) throws(RoostError) -> ResponseBody {
        let (bytes, held) = (ByteBuffer(bytes: answer.bytes), answer.held)
        // A small one is written at once with its head, and isn't counted while it waits for that.
        guard bytes.readableBytes >= SlowReaderHandler.countedBytesMin else { return .init(byteBuffer: bytes) }
        if isRead { try requireRoom(account, besides: bytes.readableBytes, for: name) }
        return ResponseBody(contentLength: bytes.readableBytes) { writer in
            try await writer.write(bytes)
            try await writer.finish(nil)
            withExtendedLifetime((account, held)) {}
        }
    }

    /// Returns the caller: the token's user, or the one on whose behalf a backend acts (SB-12).
    private func caller(of request: Request, for name: String) async throws -> (Caller, RequestAccount, VerifiedToken) {
        guard let token = BearerToken.read(request.headers[.authorization]) else {
            throw RoostError(.unauthenticated, "This needs a token: Authorization: Bearer …")
        }
        let verified = try tokens.verify(token).get()
        let account: RequestAccount
        let actsAs: UserID?
        do throws(RoostError) {
            try ConnectionTicket.current?.authenticated(verified.user, role: verified.role, isSocket: false)
            let isLimited = verified.role != .admin && verified.role != .service
            account = try connections.beginRequest(of: verified.user, isLimited: isLimited)
            ConnectionTicket.current?.requestBelongs(to: verified.user)
            try DeviceHeaders.requireNoDeviceHeaders(in: request.headers)
            actsAs = try RequestHeaders.actAs(of: request, role: verified.role)
        } catch {
            metrics.refused(name, error)
            throw error
        }
        guard let user = actsAs else {
            let caller = Caller(user: verified.user, role: verified.role, token: verified.identity)
            do {
                try await register(caller, displayName: verified.displayName)
            } catch let error as RoostError where error.code == .invalidArgument {
                throw RoostError.invalidUser(error)
            }
            return (caller, account, verified)
        }
        // With the user's own rights, regardless of the backend's.
        let caller = Caller(user: user, token: verified.identity)
        try await register(caller, displayName: nil, field: RequestHeaders.actAs)
        return (caller, account, verified)
    }

    /// Counts and logs a refusal of the token, or of the user on whose behalf it is used.
    private func refused(_ refusal: RoostError, _ request: Request) {
        metrics.authenticated(over: .http, refusal: refusal)
        let forwarded = HTTPField.Name("X-Forwarded-For").map { request.headers[values: $0] } ?? []
        let address = ConnectionTicket.current?.address(forwardedFor: forwarded)
        security.refusedAuthentication(refusal, over: .http, from: address?.description)
    }

    private func register(_ caller: Caller, displayName: String?, field: String = "sub") async throws {
        guard !knownUsers.contains(caller.user) else { return }
        let traits = Job.Traits(operation: OperationName.connect, scope: .user(caller.user))
        try await engine.perform(traits, for: caller) { context in
            try context.registerCaller(displayName: displayName, field: field)
            return []
        }
        knownUsers.insert(caller.user)
    }
}

extension RoostError {
    /// Returns the refusal of a token that names a new user with an invalid id.
    static func invalidUser(_ refusal: RoostError) -> RoostError {
        RoostError(.unauthenticated, "The token names no valid user: \(refusal.message)", field: refusal.field)
    }
}

extension HTTPRequest.Method {
    init(_ method: HTTPMethod) {
        self =
            switch method {
            case .get: .get
            case .post: .post
            case .put: .put
            case .patch: .patch
            case .delete: .delete
            }
    }
}
