import HTTPTypes
import Hummingbird
import RoostAPI

/// The HTTP rules for every path, around the routes: HEAD, OPTIONS, 405, one path per resource, the media type, and CORS.
struct HTTPRules: HTTPResponder {
    typealias Context = BasicRequestContext

    let routes: RouterResponder<BasicRequestContext>
    let origins: AllowedOrigins
    private let metrics: ServerMetrics
    private let paths = PathTable()

    init(routes: RouterResponder<BasicRequestContext>, origins: AllowedOrigins, metrics: ServerMetrics) {
        self.metrics = metrics
        self.routes = routes
        self.origins = origins
    }

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        var response = try await answer(request, context)
        origins.add(to: &response.headers, origin: request.headers[.origin])
        if request.method == .options, request.headers[.accessControlRequestMethod] != nil {
            origins.addPreflight(to: &response.headers, methods: paths.namedMethods(at: request.uri.path))
        }
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func answer(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let path = request.uri.path
        let methods = PathTable.isPlain(path) ? paths.methods(at: path) : []
        guard !methods.isEmpty || path == "/*" && request.method == .options else {
            metrics.refused(OperationName.none, .unknownOperation)
            return Problem(RoostError(.unknownOperation, "There is nothing at this path. See /openapi.json.")).response
        }
        if request.method == .options { return Self.options(paths.namedMethods(at: path)) }
        guard methods.contains(request.method) else {
            metrics.refused(OperationName.none, .unknownOperation)
            let names = paths.namedMethods(at: path).map(\.rawValue).joined(separator: ", ")
            var response = Problem(
                RoostError(.unknownOperation, "This path doesn't allow \(request.method.rawValue), only: \(names)."),
                status: 405
            ).response
            response.headers[.allow] = names
            return response
        }
        guard request.method == .head else { return try await routes.respond(to: request, context: context) }
        var head = request.head
        head.method = .get
        return try await routes.respond(to: Request(head: head, body: request.body), context: context)
    }

    private static func options(_ methods: [HTTPRequest.Method]) -> Response {
        let all = methods.isEmpty ? [.get, .head, .post, .put, .patch, .delete, .options] : methods
        return Response(status: .noContent, headers: [.allow: all.map(\.rawValue).joined(separator: ", ")])
    }
}
