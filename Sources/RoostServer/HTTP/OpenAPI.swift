import NIOCore
import RoostAPI
import RoostCore

/// The API description, generated from the operation table: OpenAPI 3.1.
enum OpenAPI {
    /// The served document. Making it probes every operation for its limits, so it is made on the first request.
    static let bytes = ByteBuffer(bytes: (try? JSONWriter.bytes(of: document(version: RoostVersion.current))) ?? [])

    static func document(version: String) -> JSONValue {
        var components: [String: JSONValue] = [:]
        var paths: [String: [String: JSONValue]] = [:]
        for type in OperationTable.handled {
            guard let entry = OperationTable.named(type.name) else { continue }
            paths[type.path, default: [:]][type.method.rawValue.lowercased()] = operation(
                entry, response: response(of: type), &components)
        }
        components["Problem"] = problem
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Roost", "version": .string(version),
                "description": """
                Chat channels for apps. The same operations can be called over the WebSocket at /v1/socket, by their operationId.
                """,
                "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
            ],
            "servers": [["url": "/"]],
            "security": [["token": []]],
            "paths": .object(paths.mapValues(JSONValue.object)),
            "components": [
                "securitySchemes": ["token": ["type": "http", "scheme": "bearer", "bearerFormat": "JWT"]],
                "parameters": .object(headers),
                "responses": .object(responses),
                "schemas": .object(components),
            ],
        ]
    }

    static func response(of type: any Handled.Type) -> Schema {
        func schema<T: Handled>(_ type: T.Type) -> Schema { (try? Schema.of(T.Response.self)) ?? .any }
        return schema(type)
    }

    private static func operation(
        _ entry: OperationTable.Entry, response: Schema, _ components: inout [String: JSONValue]
    ) -> JSONValue {
        let type = entry.type
        let inPath = Set(PathTable.parameters(of: type.path, pattern: type.path).map(\.name))
        let usesQuery = type.method == .get || type.method == .delete
        let limits = FieldLimits(of: entry)
        let parameters: [JSONValue] = entry.schema.fields.filter { inPath.contains($0.name) || usesQuery }.map { field in
            let isInPath = inPath.contains(field.name)
            var parameter: [String: JSONValue] = [
                "name": .string(field.name), "in": isInPath ? "path" : "query",
                "required": .boolean(isInPath || field.isRequired), "schema": .object(limits.schema(of: field)),
            ]
            if let example = limits.example[field.name] { parameter["example"] = example }
            return .object(parameter)
        }
        let bodyFields = usesQuery ? [] : entry.schema.fields.filter { !inPath.contains($0.name) }
        let ofHeaders = headerNames(of: entry) + [RequestHeaders.actAs]
        var result: [String: JSONValue] = [
            "operationId": .string(type.name),
            "summary": .string(type.summary),
            "description": .string("Needs the permission \(type.permission.rawValue)."),
            "tags": [.string(type.name.split(separator: ".").first.map(String.init) ?? type.name)],
            "parameters": .array(parameters + ofHeaders.map { ["$ref": .string("#/components/parameters/\($0)")] }),
        ]
        var responses: [String: JSONValue] = [
            "200": ["description": "Done.", "content": ["application/json": ["schema": json(response, &components)]]]
        ]
        if type.takesKey { responses["204"] = ["description": "An earlier call with the same Idempotency-Key did it."] }
        for status in refusals(of: entry) {
            responses["\(status)"] = ["$ref": .string("#/components/responses/\(status)")]
        }
        result["responses"] = .object(responses)
        if !bodyFields.isEmpty {
            result["requestBody"] = [
                "required": .boolean(bodyFields.contains(where: \.isRequired)),
                "content": [
                    "application/json": [
                        "schema": limits.object(of: bodyFields),
                        "example": .object(limits.example.filter { !inPath.contains($0.key) }),
                    ]
                ],
            ]
        }
        return .object(result)
    }

    /// The statuses with which an operation can be refused.
    private static func refusals(of entry: OperationTable.Entry) -> [Int] {
        var statuses = [400, 401, 403, 404, 413, 500, 503]
        // A change can conflict with the current state, and positions can be older than a restored backup.
        if !entry.type.isReadOnly || entry.type.name.hasPrefix("stream.") { statuses.append(409) }
        if entry.fields.contains("ifMetadataVersion") { statuses.append(412) }
        // The media type is checked even for operations without fields in the body.
        if ![.get, .delete].contains(entry.type.method) { statuses.append(415) }
        if headerNames(of: entry).contains(RequestHeaders.idempotencyKey) { statuses.append(422) }
        if entry.type.userRate != nil { statuses.append(429) }
        return statuses.sorted()
    }

    /// Every status that isn't 200, each a problem document.
    private static let responses: [String: JSONValue] = {
        let meanings = [
            400: "Malformed request or invalid field.", 401: "No token, or an invalid one.",
            403: "The caller isn't allowed to do this.", 404: "Doesn't exist, or the caller may not know that it does.",
            409: "Conflicts with the current state.", 412: "The metadata has another version.",
            413: "A field or the body is larger than its limit.", 415: "The body isn't application/json.",
            422: "The idempotency key was used for another request, or has expired.",
            429: "The caller exceeds the operation's rate limit.", 500: "The server failed.",
            503: "The server is overloaded, starting or shutting down: try again later.",
        ]
        return Dictionary(
            uniqueKeysWithValues: meanings.map { status, meaning in
                var response: [String: JSONValue] = [
                    "description": .string(meaning),
                    "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
                ]
                if status == 401 { response["headers"] = ["WWW-Authenticate": ["schema": ["type": "string"], "required": true]] }
                if [429, 503].contains(status) {
                    response["headers"] = ["Retry-After": ["schema": ["type": "string", "pattern": "^[0-9]+$"]]]
                }
                return ("\(status)", .object(response))
            })
    }()

    /// The headers that set options of an operation.
    private static func headerNames(of entry: OperationTable.Entry) -> [String] {
        RequestHeaders.ofFields.map(\.name).filter { name in
            if name == RequestHeaders.idempotencyKey, entry.type.takesKey { return true }
            return RequestHeaders.ofFields.contains { $0.name == name && entry.fields.contains($0.field) }
        }
    }

    /// The headers that operations take, by name.
    private static var headers: [String: JSONValue] {
        var headers: [String: JSONValue] = [
            RequestHeaders.actAs: header(
                RequestHeaders.actAs,
                "The user on whose behalf a backend acts, percent-encoded. Only with a token of the role service; "
                    + "the user's rights apply.")
        ]
        for field in RequestHeaders.ofFields { headers[field.name] = header(field.name, field.summary) }
        return headers
    }

    private static func header(_ name: String, _ description: String) -> JSONValue {
        [
            "name": .string(name), "in": "header", "required": false, "description": .string(description),
            "schema": ["type": "string"],
        ]
    }

    /// Returns a schema as JSON Schema. Objects become components, each once.
    static func json(_ schema: Schema, _ components: inout [String: JSONValue]) -> JSONValue {
        switch schema {
        case .string(let format, let maxLength, let pattern):
            var result: [String: JSONValue] = ["type": "string"]
            if let format { result["format"] = .string(format) }
            if let pattern { result["pattern"] = .string(pattern) }
            if let maxLength { result["maxLength"] = .integer(Int64(maxLength)) }
            return .object(result)
        case .integer: return ["type": "integer", "format": "int64"]
        case .number: return ["type": "number"]
        case .boolean: return ["type": "boolean"]
        case .enumeration(let cases): return ["type": "string", "enum": .array(cases.map(JSONValue.string))]
        case .array(let element): return ["type": "array", "items": json(element, &components)]
        case .map(let value): return ["type": "object", "additionalProperties": json(value, &components)]
        case .any: return ["type": "object", "description": "Any JSON object."]
        case .object(let name, let fields):
            let component = name.replacing("<", with: "Of").replacing(">", with: "")
            if components[component] == nil { components[component] = object(fields, &components) }
            return ["$ref": .string("#/components/schemas/\(component)")]
        }
    }

    /// An object of an answer. It is open: fields can be added later.
    private static func object(_ fields: [Schema.Field], _ components: inout [String: JSONValue]) -> JSONValue {
        var result: [String: JSONValue] = [
            "type": "object",
            "properties": .object(
                Dictionary(
                    fields.map { field in
                        let schema = json(field.schema, &components)
                        // An optional field of an answer may be absent or null.
                        return (field.name, field.isRequired ? schema : ["anyOf": [schema, ["type": "null"]]])
                    }, uniquingKeysWith: { first, _ in first })),
        ]
        let required = fields.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { result["required"] = .array(required) }
        return .object(result)
    }

    private static let problem: JSONValue = [
        "type": "object",
        "description": "A refusal (RFC 9457).",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": [
            "type": ["type": "string"],
            "title": ["type": "string"],
            "status": ["type": "integer"],
            "code": ["type": "string", "enum": .array(RoostError.Code.allCases.map { .string($0.rawValue) })],
            "detail": ["type": "string"],
            "field": ["type": "string"],
            "limit": ["type": "integer"],
            "rule": ["type": "string"],
            "until": ["type": "string", "format": "date-time"],
            "retryAfterMilliseconds": ["type": "integer"],
        ],
    ]
}
