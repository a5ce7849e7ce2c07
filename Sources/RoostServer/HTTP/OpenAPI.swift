import RoostAPI
import RoostCore

/// The API description, made from the operation table: OpenAPI 3.1.
enum OpenAPI {
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
                "schemas": .object(components),
            ],
        ]
    }

    private static func response(of type: any Handled.Type) -> Schema {
        func schema<T: Handled>(_ type: T.Type) -> Schema { (try? Schema.of(T.Response.self)) ?? .any }
        return schema(type)
    }

    private static func operation(
        _ entry: OperationTable.Entry, response: Schema, _ components: inout [String: JSONValue]
    ) -> JSONValue {
        let type = entry.type
        let inPath = Set(RequestFields.pathFields(of: type.path))
        let usesQuery = type.method == .get || type.method == .delete
        var result: [String: JSONValue] = [
            "operationId": .string(type.name),
            "summary": .string(type.summary),
            "description": .string("Needs the permission \(type.permission.rawValue)."),
            "tags": [.string(type.name.split(separator: ".").first.map(String.init) ?? type.name)],
            "responses": [
                "200": [
                    "description": "Done.", "content": ["application/json": ["schema": json(response, &components)]],
                ],
                "default": [
                    "description": "Refused. The code says why.",
                    "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
                ],
            ],
        ]
        let parameters: [JSONValue] = entry.schema.fields.filter { inPath.contains($0.name) || usesQuery }.map { field in
            let isInPath = inPath.contains(field.name)
            return [
                "name": .string(field.name), "in": isInPath ? "path" : "query",
                "required": .boolean(isInPath || field.isRequired), "schema": json(field.schema, &components),
            ]
        }
        let ofHeaders = RequestHeaders.ofFields.filter { entry.fields.contains($0.field) }.map(\.name) + [RequestHeaders.actAs]
        result["parameters"] = .array(parameters + ofHeaders.map { ["$ref": .string("#/components/parameters/\($0)")] })
        let bodyFields = entry.schema.fields.filter { !inPath.contains($0.name) }
        if !usesQuery, !bodyFields.isEmpty {
            result["requestBody"] = [
                "required": .boolean(bodyFields.contains(where: \.isRequired)),
                "content": ["application/json": ["schema": object(bodyFields, &components, isClosed: true)]],
            ]
        }
        return .object(result)
    }

    /// The headers that operations take, by their names.
    private static var headers: [String: JSONValue] {
        var headers: [String: JSONValue] = [
            RequestHeaders.actAs: header(
                RequestHeaders.actAs,
                "The user in whose name a backend asks, percent-encoded. Only with a token of the role service; the user's rights hold."
            )
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

    /// A shape as JSON Schema. Objects become components, each once.
    private static func json(_ schema: Schema, _ components: inout [String: JSONValue]) -> JSONValue {
        switch schema {
        case .string(let format, let maxLength):
            var result: [String: JSONValue] = ["type": "string"]
            if let format { result["format"] = .string(format) }
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
            if components[component] == nil { components[component] = object(fields, &components, isClosed: false) }
            return ["$ref": .string("#/components/schemas/\(component)")]
        }
    }

    private static func object(_ fields: [Schema.Field], _ components: inout [String: JSONValue], isClosed: Bool) -> JSONValue {
        var result: [String: JSONValue] = [
            "type": "object",
            "properties": .object(
                Dictionary(
                    fields.map { field in
                        let schema = json(field.schema, &components)
                        // An optional field of an answer may be absent or null.
                        let isNullable = !field.isRequired && !isClosed
                        return (field.name, isNullable ? ["anyOf": [schema, ["type": "null"]]] : schema)
                    }, uniquingKeysWith: { first, _ in first })),
        ]
        let required = fields.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { result["required"] = .array(required) }
        if isClosed { result["additionalProperties"] = false }
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
