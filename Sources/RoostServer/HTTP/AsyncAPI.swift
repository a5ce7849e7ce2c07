import NIOCore
import RoostAPI
import RoostCore

/// The description of the socket, generated from the types of its frames: AsyncAPI 3.0.
///
/// The schemas `ClientFrame` and `ServerFrame` are everything sent in each direction; `Frame.NAME` is a single frame, and `Result.NAME` the answer
/// of an operation.
enum AsyncAPI {
    /// The document as it is served.
    static let bytes = ByteBuffer(bytes: (try? JSONWriter.bytes(of: document(version: RoostVersion.current))) ?? [])

    private enum Sender { case client, server }

    /// A kind of frame.
    private struct Frame {
        /// Its name in docs/protocol.md, which is also that of the member that identifies it.
        let name: String
        let sender: Sender
        let summary: String
        let schema: JSONValue
    }

    static func document(version: String) -> JSONValue {
        var schemas: [String: JSONValue] = [:]
        let frames = frames(&schemas)
        for type in OperationTable.handled { schemas["Result.\(type.name)"] = OpenAPI.json(OpenAPI.response(of: type), &schemas) }
        for frame in frames { schemas[component(frame)] = frame.schema }
        for (name, sender) in [("ClientFrame", Sender.client), ("ServerFrame", .server)] {
            schemas[name] = ["oneOf": .array(frames.filter { $0.sender == sender }.map { reference(component($0)) })]
        }
        func messages(from sender: Sender) -> JSONValue {
            .array(
                frames.filter { $0.sender == sender }.map { ["$ref": .string("#/channels/socket/messages/\($0.name)")] }
            )
        }
        let channel: JSONValue = ["$ref": "#/channels/socket"]
        return [
            "asyncapi": "3.0.0",
            "info": [
                "title": "Roost", "version": .string(version),
                "description": "The WebSocket of a Roost server: each text message is one frame. See docs/protocol.md.",
                "license": ["name": "Apache-2.0"],
            ],
            "defaultContentType": "application/json",
            "channels": [
                "socket": [
                    "address": .string(GatewayChannel.socketPath),
                    "messages": .object(
                        Dictionary(
                            uniqueKeysWithValues: frames.map {
                                ($0.name, ["$ref": .string("#/components/messages/\($0.name)")] as JSONValue)
                            })),
                    "bindings": ["ws": ["method": "GET"]],
                ]
            ],
            "operations": [
                "takeFrame": ["action": "receive", "channel": channel, "messages": messages(from: .client)],
                "sendFrame": ["action": "send", "channel": channel, "messages": messages(from: .server)],
            ],
            "components": [
                "messages": .object(
                    Dictionary(
                        uniqueKeysWithValues: frames.map { frame in
                            let message: JSONValue = [
                                "name": .string(frame.name), "summary": .string(frame.summary),
                                "payload": reference(component(frame)),
                            ]
                            return (frame.name, message)
                        })),
                "schemas": .object(schemas),
            ],
            "x-close-codes": .array(
                CloseCode.allCases.map { ["code": .integer(Int64($0.rawValue)), "meaning": .string($0.meaning)] }),
        ]
    }

    private static func component(_ frame: Frame) -> String { "Frame.\(frame.name)" }
    private static func reference(_ name: String) -> JSONValue { ["$ref": .string("#/components/schemas/\(name)")] }

    // MARK: Frames

    private static func frames(_ schemas: inout [String: JSONValue]) -> [Frame] {
        let number: JSONValue = ["type": "integer", "format": "int64"]
        let error = described(RoostError.self, &schemas)
        let event = (try? Schema.of(Event.self)) ?? .any
        let watching = Schema.Field(name: "watching", schema: .boolean, isRequired: true)
        let watched = OpenAPI.json(.object(name: "WatchedEvent", fields: [watching] + event.fields), &schemas)
        // The reply is one of three: with the result, without it if an earlier call with the same key did the work, or with the refusal.
        let reply: JSONValue = [
            "type": "object", "required": ["reply"],
            "properties": ["reply": number, "result": [:], "done": ["const": true], "error": error],
            "oneOf": [["required": ["result"]], ["required": ["done"]], ["required": ["error"]]],
        ]
        return [
            Frame(
                name: "authenticate", sender: .client, summary: "The first frame, unless the upgrade request had the header.",
                schema: described(AuthenticateFrame.self, &schemas)),
            Frame(
                name: "call", sender: .client, summary: "A call of an operation.",
                schema: ["oneOf": .array(OperationTable.handled.compactMap { OperationTable.named($0.name) }.map(call))]),
            Frame(
                name: "welcome", sender: .server, summary: "The connection is authenticated.",
                schema: described(WelcomeFrame.self, &schemas)),
            Frame(
                name: "reply", sender: .server, summary: "The answer to a call. Its result is Result.NAME of the operation.",
                schema: reply),
            Frame(name: "event", sender: .server, summary: "A committed change.", schema: watched),
            Frame(
                name: "message", sender: .server, summary: "The event of a new message: its fields follow from the message.",
                schema: described(EventFrame.NewMessage.self, &schemas)),
            Frame(
                name: "signal", sender: .server, summary: "A transient event, which isn't stored.",
                schema: described(Signal.self, &schemas)),
            Frame(
                name: "unwatched", sender: .server, summary: "A watch has ended: the user may no longer watch.",
                schema: described(UnwatchedFrame.self, &schemas)),
            Frame(
                name: "readingEnded", sender: .server,
                summary: "Reading has ended: the user has marked messages as unread, or may not read.",
                schema: described(ReadingEndedFrame.self, &schemas)),
            Frame(
                name: "error", sender: .server, summary: "An error in a frame that can't have a reply.",
                schema: ["type": "object", "required": ["error"], "properties": ["error": error], "not": ["required": ["reply"]]]),
            Frame(
                name: "closing", sender: .server, summary: "The server is shutting down.",
                schema: described(ClosingFrame.self, &schemas)),
        ]
    }

    private static func described<T: Decodable>(_ type: T.Type, _ schemas: inout [String: JSONValue]) -> JSONValue {
        OpenAPI.json((try? Schema.of(type)) ?? .any, &schemas)
    }

    /// The call of an operation, with all its fields, including those of the path.
    private static func call(_ entry: OperationTable.Entry) -> JSONValue {
        let with = FieldLimits(of: entry).object(of: entry.schema.fields)
        let isRequired = entry.schema.fields.contains(where: \.isRequired)
        var properties: [String: JSONValue] = [
            "call": ["type": "integer", "format": "int64"], "operation": ["const": .string(entry.type.name)], "with": with,
        ]
        if entry.type.takesKey {
            properties[IdempotencyKey.member] = ["type": "string", "pattern": .string(IdempotencyKey.pattern)]
        }
        return [
            "type": "object", "additionalProperties": false,
            "required": isRequired ? ["call", "operation", "with"] : ["call", "operation"],
            "properties": .object(properties),
        ]
    }
}
