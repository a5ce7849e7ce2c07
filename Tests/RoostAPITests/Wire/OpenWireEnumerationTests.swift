import Foundation
import RoostAPI
import Testing

/// Enumerations to which a newer server may add cases.
@Suite("Values that this version doesn't know")
struct OpenWireEnumerationTests {
    private func expectKept<Value: OpenWireEnumeration>(_ type: Value.Type, _ names: [String]) throws {
        #expect(Value.allCases.map(\.rawValue) == names)
        for name in names + ["other", ""] {
            let json = Data("[\"\(name)\"]".utf8)
            let values = try JSONDecoder().decode([Value].self, from: json)
            #expect(values == [Value(rawValue: name)] && values.map(\.isKnown) == [names.contains(name)])
            #expect(try JSONEncoder().encode(values) == json)
            if !names.contains(name) { #expect(values == [.unknown(name)]) }
            do {
                try values.first?.validate(field: "f")
                #expect(names.contains(name))
            } catch {
                #expect(error == .invalidArgument("f", "must be one of: \(names.joined(separator: ", "))"))
            }
        }
    }

    @Test("I21 each is kept as its string, and refused in a call with the names of the known ones")
    func kept() throws {
        try expectKept(MessageKind.self, ["text", "admin", "system", "custom"])
        try expectKept(PushOption.self, ["default", "suppress", "force"])
        try expectKept(Mentionee.Kind.self, ["user", "channel"])
    }

    @Test("AM-43 a message of an unknown kind counts unless it is silent")
    func counts() {
        var message = Message(
            messageId: MessageID(rawValue: 1), channelId: "general", seq: 2, changeSeq: 2, sender: "bob", clientId: "1", text: "hi",
            createdAt: Timestamp(milliseconds: 0))
        message.content.kind = .unknown("poll")
        #expect(Unread.counts(message))
        message.content.isSilent = true
        #expect(!Unread.counts(message))
    }
}
