import Foundation
import NIOCore
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// Plainly written calls, which the server reads mostly without Foundation: they must mean the same.
@Suite("Plainly written calls")
struct CallEnvelopeTests {
    /// What the server makes of a frame, and what Foundation alone makes of it.
    private func readings(_ frame: String) throws -> [String] {
        let messages = [ClientMessage(ByteBuffer(string: frame)), try ClientMessage(byFoundation: Array(frame.utf8))]
        return messages.map { description(of: $0) }
    }

    /// A value and its contents. Equal dictionaries are described alike, although their own order may differ.
    private func description(of value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        let children = mirror.children.map { "\($0.label ?? "") \(description(of: $0.value))" }
        guard !children.isEmpty else { return "\(type(of: value)) \(value)" }
        let hasOrder = mirror.displayStyle != .dictionary && mirror.displayStyle != .set
        return "\(type(of: value))(\((hasOrder ? children : children.sorted()).joined(separator: ", ")))"
    }

    private func isPlain(_ frame: String) -> Bool { ClientMessage(plainly: Array(frame.utf8)) != nil }

    static let plain = [
        #"{"call":7,"operation":"user.me"}"#, #"{"call":7,"operation":"user.me","with":{}}"#,
        #"{"with":{"channel":"general"},"operation":"message.list","call":123456789012345678}"#,
        " {\n\t\"call\" : 0 ,\r\"operation\" : \"message.list\" , \"with\" : { \"channel\" : \"a\" , \"limit\" : 5 } } ",
        #"{"call":1,"operation":"message.send","with":{"channel":"a","clientId":"\"}{\\","text":"}]{[\"\\\u00e9 é 🐦"}}"#,
        #"{"call":1,"operation":"message.send","with":{"channel":"a","clientId":"1","text":"x","metadata":{"a":[{"b":[]}],"c":1e3}}}"#,
        #"{"call":1,"operation":"channel.query","with":{ }}"#,
        #"{"call":1,"operation":"channel.hide","key":"0192f3a0-5c1e-7d3b-9a4f-6e2b8c0d1e2f","with":{"channel":"a"}}"#,
        #"{"call":1,"operation":"us\u0065r.me"}"#, #"{"c\u0061ll":1,"operation":"user.me"}"#,
        // Operations that read their own fields.
        #"{"call":1,"operation":"message.send","with":{"text":"é 🐦 \#u{7F}","clientId":"ü","channel":"a"}}"#,
        send(#""text":"\#(String(repeating: "é", count: 5000))""#),
        #"{"call":1,"operation":"reading.mark","with":{"channel":"a"}}"#,
        #"{"call":1,"operation":"reading.mark","with": { "seq" : 12 , "channel" : "é" } }"#,
        send(#""text":"x","data":"\#(String(repeating: "x", count: 5000))""#),
        send(#""text":"","kind":"custom","customType":"é","isSilent":true , "pushOption":"force","parentId":"12","tags":[ ]"#),
        send(#""text":"x","metadata":{ "a" : [1,true,[],{}] ,"é":{"b":"c"}, "d" : false},"targetLanguages":["pt-BR","de"]"#),
        send(#""text":"x","metaArrays":{"a":["b","é"],"c":[]}"#), send(#""text":"x","metadata":{"a":1.5,"b":-1,"c":null}"#),
        send(#""t\u0065xt":"\ud83d\udc26\/","metadata":{"\u00e9":"\u0000\b\f","c":[1e-5,-2.50,-9223372036854775808]}"#),
        #"{"call":1,"operation":"reading.mark","w\u0069th":{"chann\u0065l":"a","s\u0065q":1}}"#,
        send(#""text":"x","metadata":null"#), send(#""text":"x","metaArrays":{"a":["b\u0041"]}"#),
        send(#""text":"x","mentionees":[{"type":"user","users":["b" , "c"]},{"type":"channel"}]"#),
        #"{"call":1,"operation":"message.edit","with":{"message":"7","channel":"a","text":"é","mentionees":[],"metadata":{}}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","before":17}}"#,
        #"{"call":1,"operation":"message.list","with":{ "limit" : 100 , "after":0,"channel":"é"}}"#,
        #"{"call":1,"operation":"message.list","with":{"around":9007199254740991,"channel":"a","limit":1}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","around":9,"newerLimit":3,"kinds":["text"]}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","aroundMessage":"9"}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","beforeTime":"2026-03-01T12:30:05.250Z"}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","afterTime":"2026-03-01T12:30:05.000Z","limit":2}}"#,
        #"{"call":1,"operation":"stream.resume","with":{"after":0,"channels":{}}}"#,
        #"{"call":1,"operation":"stream.resume","with":{"channels":{"a":5,"é":0,"c":9007199254740991},"after":7}}"#,
    ]

    @Test("R10 I21 a plainly written call means what Foundation says", arguments: plain)
    func meansTheSame(frame: String) throws {
        let readings = try readings(frame)
        #expect(isPlain(frame) && readings[0] == readings[1])
        #expect(readings[0].hasPrefix("ClientMessage(call "))
    }

    @Test("R10 I21 calls are compared with Foundation's reading: it refuses what isn't JSON, and the plain reader doesn't")
    func isFoundations() {
        let frame = #"{"call":1,"operation":"user.me","with":{]}"#
        #expect(isPlain(frame))
        #expect(throws: (any Error).self) { try ClientMessage(byFoundation: Array(frame.utf8)) }
    }

    private static func send(_ more: String) -> String {
        #"{"call":1,"operation":"message.send","with":{"channel":"a","clientId":"1",\#(more)}}"#
    }

    static let others = [
        // An unknown field of an entry.
        send(#""text":"x","mentionees":[{"type":"user","users":["b"],"more":1}]"#),
        // Numbers, names and fields that aren't written plainly.
        #"{"call":-1,"operation":"user.me"}"#, #"{"call":1.0,"operation":"user.me"}"#, #"{"call":1e1,"operation":"user.me"}"#,
        #"{"call":9223372036854775807,"operation":"user.me"}"#, #"{"call":1234567890123456789,"operation":"user.me"}"#,
        #"{"call":"1","operation":"user.me"}"#, #"{"call":null,"operation":"user.me"}"#, #"{"call":1.5,"operation":"user.me"}"#,
        #"{"call":1,"operation":"user.me","with":null}"#, #"{"call":1,"operation":"user.me","with":[]}"#,
        #"{"call":1,"operation":"user.me","with":"{}"}"#, #"{"call":1,"operation":"user.me","more":{}}"#,
        // Calls that can't be carried out.
        #"{"operation":"user.me"}"#, #"{"call":1}"#, #"{"call":1,"operation":""}"#, #"{"call":1,"operation":"user.you"}"#,
        #"{"call":1,"operation":7}"#, #"{"call":1,"operation":"user.me","with":{"x":1}}"#,
        #"{"call":1,"operation":"message.list"}"#,
        #"{"call":1,"operation":"message.list","with":{}}"#, #"{"call":1,"operation":"message.list","with":{"channel":7}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","limit":1.5}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","limit":0}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","limit":101}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","afterTime":"2026-03-01T12:30:05+01:00","limit":2}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","aroundTime":"yesterday"}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","aroundTime":7}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","aroundMessage":7}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","limit":99999999999999999}}"#,
        #"{"call":1,"operation":"message.list","with":{"channel":"a","before":1,"after":2}}"#,
        #"{"call":1,"operation":"channel.query","with":{"sort":"colour"}}"#,
        // Invalid contents.
        send(#""text":"x","metadata":7"#), send(#""text":"x","metadata":"y""#), send(#""text":"x","metadata":[[[[[[[[[1]]]]]]]]]"#),
        send(#""text":"x","isSilent":1"#), send(#""text":"x","kind":"poll""#), send(#""text":"x","parentId":"-1""#),
        send(#""text":"x","pushOption":"later""#),
        #"{"call":1,"operation":"message.list","with":{"channel":"a","kinds":["poll"]}}"#,
        send(#""text":"x","tags":["a",7]"#), send(#""text":"x","mentionees":[{"users":[]}]"#),
        send(#""text":"x","metaArrays":{"a":"b"}"#),
        #"{"call":1,"operation":"message.edit","with":{"channel":"a","message":7,"text":"x"}}"#,
        #"{"call":1,"operation":"message.edit","with":{"channel":"a","message":"7","text":"x","isSilent":true}}"#,
        // Fields that operations with a reader of their own leave to Foundation.
        send(#""text":"\#(String(repeating: "x", count: 20_001))""#), send(#""text":null"#), send(#""text":7"#),
        send(#""tekst":"x""#),
        #"{"call":1,"operation":"message.send","with":{"channel":"a","clientId":"1"}}"#,
        #"{"call":1,"operation":"reading.mark","with":{"channel":"a","seq":-1}}"#,
        #"{"call":1,"operation":"reading.mark","with":{"channel":"a","seq":1.5}}"#,
        #"{"call":1,"operation":"reading.mark","with":{"channel":"","seq":1}}"#,
        #"{"call":1,"operation":"stream.resume","with":{"after":0}}"#,
        #"{"call":1,"operation":"stream.resume","with":{"after":0,"channels":{"a":-1}}}"#,
        #"{"call":1,"operation":"stream.resume","with":{"after":0,"channels":{"":1}}}"#,
        #"{"call":1,"operation":"stream.resume","with":{"after":0,"channels":[]}}"#,
        send(#""text":"x","metadata":\#(String(repeating: "[", count: 40))\#(String(repeating: "]", count: 40))"#),
    ]

    @Test("R10 I21 every other call is left to Foundation, with its refusal", arguments: others)
    func isLeft(frame: String) throws {
        let readings = try readings(frame)
        #expect(!isPlain(frame) && readings[0] == readings[1])
    }

    @Test("R10 frames with ambiguous fields or none at all aren't plain calls")
    func ambiguous() {
        for frame in [
            #"{"call":1,"operation":"user.me","call":2}"#,
            #"{"call":1,"operation":"message.list","with":{"channel":"a","channel":"b"}}"#,
            #"{"authenticate":{"token":"x"}}"#, "{}", "[]", "7", "", "{", #"{"call":1,"operation":"user.me"}}"#,
            #"{"call":1,"operation":"stream.resume","with":{"after":0,"channels":{"\#u{E9}":1,"e\#u{301}":2}}}"#,
            #"{"call":1,"operation":"stream.resume","with":{"after":0,"channels":{"a":1,"a":2}}}"#,
            #"{"call":1,"operation":"user.me"} 1"#, #"{"call":1,"operation":"user.me",}"#,
            #"{"call":07,"operation":"user.me"}"#, "{\u{B}\"call\":1,\"operation\":\"user.me\"}",
        ] {
            if case .call = ClientMessage(ByteBuffer(string: frame)) { Issue.record("\(frame)") }
        }
    }

    /// Objects with two members, and each member alone.
    private static let pairs: [(whole: String, members: [String])] = [
        (#"{"a":7,"é":0}"#, [#"{"a":7}"#, #"{"é":0}"#]), (#"{"a":7,"\u0061b":-0}"#, [#"{"a":7}"#, #"{"\u0061b":-0}"#]),
    ]

    /// Whether a frame is read alike either way. If both members of an object are wrong, Foundation names the first one it meets, which depends on
    /// the order of a dictionary. So each reading may be Foundation's for either member alone.
    private func areAlike(_ readings: [String], of frame: String) throws -> Bool {
        if readings[0] == readings[1] { return true }
        let alone = [0, 1].map { member in
            Self.pairs.reduce(frame) { $0.replacingOccurrences(of: $1.whole, with: $1.members[member]) }
        }
        let possible = try alone.map { description(of: try ClientMessage(byFoundation: Array($0.utf8))) }
        return readings.allSatisfy { possible.contains($0) }
    }

    @Test("every operation with random fields means the same either way")
    func operations() throws {
        var (count, random) = (0, SeededGenerator(seed: 11))
        let values = [
            "1", "0", "true", "null", #""a""#, #""é\n""#, "[]", #"["a","b"]"#, "{}", #"{"k":[1]}"#, "1.5", #""group""#, "-1",
            Self.pairs[0].whole, Self.pairs[1].whole, #""a\u00e9""#, #""e\#u{301}""#,
        ]
        for type in OperationTable.handled {
            guard let entry = OperationTable.named(type.name) else { continue }
            for names in [entry.schema.fields.map(\.name), []] {
                for _ in 0..<20 {
                    let chosen = names.filter { _ in random.once(in: 2) }
                    let fields = chosen.map { "\"\($0)\":\(random.pick(values))" }.joined(separator: ",")
                    let frame = #"{"call":3,"operation":"\#(type.name)","with":{\#(fields)}}"#
                    let readings = try readings(frame)
                    guard try areAlike(readings, of: frame) else {
                        Issue.record("\(frame): \(readings)")
                        return
                    }
                    if isPlain(frame) { count += 1 }
                }
            }
        }
        #expect(count > 200)
    }
}
