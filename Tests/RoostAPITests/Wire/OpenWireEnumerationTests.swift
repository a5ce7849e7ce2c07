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
        try expectKept(MembershipState.self, ["member", "none"])
        try expectKept(HiddenState.self, ["unhidden", "hiddenAllowAutoUnhide", "hiddenPreventAutoUnhide"])
        try expectKept(InvitationState.self, ["pending", "accepted", "declined", "withdrawn"])
        try expectKept(
            MemberResult.Outcome.self,
            [
                "added", "removed", "changed", "invited", "withdrawn", "already_member", "already_invited", "unchanged",
                "not_member", "not_invited", "auto_declined", "refused",
            ])
    }

    /// Reads a value as a client reads answers, with a part of its JSON replaced by one that this version doesn't know. Otherwise it can't be read.
    private func read<Value: Codable>(_ value: Value, replacing part: String, with newer: String) throws -> Value {
        let known = String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self)
        let json = Data(known.replacing(part, with: newer).utf8)
        #expect(json != Data(known.utf8), "\(known)")
        #expect(throws: DecodingError.self) { _ = try JSONDecoder().decode(Value.self, from: json) }
        return try JSONDecoder.forAnswers.decode(Value.self, from: json)
    }

    @Test("I21 permissions, rules and options that this version doesn't know are left out of answers, and only of those")
    func leftOut() throws {
        let role = RoleDefinition(role: .operator, rank: 50, permissions: [.memberAdd, .messageSend])
        let (send, sing) = (#""message.send""#, #""message.sing""#)
        #expect(try read(role, replacing: send, with: sing).permissions == [.memberAdd])
        let rows = Rows(ownCapabilities: ["general": [.channelRead, .messageSend]], capabilities: ["member": [.messageSend]])
        let left = Rows(ownCapabilities: ["general": [.channelRead]], capabilities: ["member": []])
        #expect(try read(rows, replacing: send, with: sing) == left)
        let policy = try #require(ChannelPolicy.preset(.live))
        let fixed = try read(policy, replacing: #""fixed":["discovery"]"#, with: #""fixed":["melody","discovery"]"#)
        #expect(fixed == policy)
        let options = AppOptions(confusableNames: .refused, pushLevel: .mentionsOnly)
        let other = try read(options, replacing: #""mentionsOnly""#, with: #""loudOnly""#)
        #expect(other == AppOptions(confusableNames: .refused))
        let call = PutRole(role: .operator, rank: 50, permissions: [.messageSend])
        let json = String(decoding: try JSONWriter.bytes(of: call), as: UTF8.self).replacing(send, with: sing)
        #expect(throws: DecodingError.self) { _ = try JSONDecoder.forAnswers.decode(PutRole.self, from: Data(json.utf8)) }
    }

    @Test(
        "I21 a rule with a value that this version doesn't know is left out of a channel's policy, and allows nobody in a whole one"
    )
    func policies() throws {
        let changes = PolicyChanges(send: .admins, maxMembers: 5)
        let (admins, sponsors) = (#""send":"admins""#, #""send":"sponsors""#)
        #expect(try read(changes, replacing: admins, with: sponsors) == PolicyChanges(maxMembers: 5))
        var policy = try #require(ChannelPolicy.preset(.broadcast))
        let newer = try read(policy, replacing: admins, with: sponsors)
        policy.send = .nobody
        #expect(newer == policy)
    }

    @Test("I21 a result with an outcome and a code that this version doesn't know is read, and its code is final")
    func results() throws {
        let error = #"{"code":"too_tired","message":"No.","field":"users"}"#
        let refusal = RoostError(.notPermitted, "No. (too_tired)", field: "users", rule: "too_tired")
        let results = Data(
            #"{"results":[{"userId":"bob","outcome":"put_off","error":\#(error)},{"userId":"cat","outcome":"added"}]}"#.utf8)
        let read = try JSONDecoder().decode(MemberResults.self, from: results).results
        #expect(
            read == [
                MemberResult(userId: "bob", outcome: .unknown("put_off"), error: refusal),
                MemberResult(userId: "cat", outcome: .added),
            ])
        let explanation = Data(#"{"permission":"message.send","isAllowed":false,"refusal":\#(error)}"#.utf8)
        #expect(try JSONDecoder().decode(PermissionExplanation.self, from: explanation).refusal == refusal)
        // The API's description is still that of the known codes.
        let described = try Schema.of(MemberResult.self).fields.first { $0.name == "error" }?.schema
        #expect(try described == Schema.of(RoostError.self))
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
