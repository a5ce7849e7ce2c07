import ArgumentParser
import RoostAPI
import RoostServer
import Testing

@testable import RoostCommand

@Suite("Typed fields of a call")
struct CallFieldsTests {
    private func json(_ operation: String, _ words: String...) throws -> String {
        let guide = try #require(OperationGuide.named(operation))
        let values = try CallFields(words, of: guide).values
        return String(decoding: try JSONWriter.bytes(of: JSONValue.object(values)), as: UTF8.self)
    }

    private func mistake(_ operation: String, _ words: String...) throws -> String? {
        let guide = try #require(OperationGuide.named(operation))
        do {
            _ = try CallFields(words, of: guide)
            return nil
        } catch let error as ValidationError {
            return error.message
        }
    }

    @Test("a value is read by its field's type: text, numbers, flags, names, lists, objects")
    func values() throws {
        let found = [
            try json(
                "message.send", "channel=general", "clientId=7", "text=a=b, 3", #"metadata={"n":9007199254740993}"#, "tags=x,y"),
            try json("channel.silence", "channel=general", "seconds=-1"),
            try json("channel.hide", "channel=general", "allowAutoUnhide=false"),
            try json(
                "channel.query", "types=community", "types=live,group", "membership=all", "limit=5", #"includingTags=["a,b"]"#),
            try json("channel.update", "channel=general", "tags=", "displayName="),
            try json("channel.update", "channel=general", "policy.send=operators", "policy.maxMembers=5"),
            try json("channel.update", "channel=general", #"policy={"send":"operators"}"#, "policy.maxMembers=5"),
            try json("channel.update", "channel=general", "metadata.floor=3", "metadata.name=west wing", "metadata.open=true"),
            try json(
                "message.send", "channel=general", "clientId=7", "text=a", #"mentionees={"type":"user","users":["bob","cat"]}"#),
            try json(
                "message.send", "channel=general", "clientId=7", "text=a", #"mentionees=[{"type":"channel"}]"#,
                #"mentionees={"type":"user"}"#),
            try json("stream.resume", "after=4", "channels.my.own=5", "channels.general=9"),
        ]
        let expected = [
            #"{"channel":"general","clientId":"7","metadata":{"n":9007199254740993},"tags":["x","y"],"text":"a=b, 3"}"#,
            #"{"channel":"general","seconds":-1}"#, #"{"allowAutoUnhide":false,"channel":"general"}"#,
            #"{"includingTags":["a,b"],"limit":5,"membership":"all","types":["community","live","group"]}"#,
            #"{"channel":"general","displayName":"","tags":[]}"#,
            #"{"channel":"general","policy":{"maxMembers":5,"send":"operators"}}"#,
            #"{"channel":"general","policy":{"maxMembers":5,"send":"operators"}}"#,
            #"{"channel":"general","metadata":{"floor":3,"name":"west wing","open":true}}"#,
            #"{"channel":"general","clientId":"7","mentionees":[{"type":"user","users":["bob","cat"]}],"text":"a"}"#,
            #"{"channel":"general","clientId":"7","mentionees":[{"type":"channel"},{"type":"user"}],"text":"a"}"#,
            #"{"after":4,"channels":{"general":9,"my.own":5}}"#,
        ]
        #expect(found == expected)
    }

    @Test("a mistake names the field, the value and what it should be")
    func mistakes() throws {
        let found = [
            try mistake("message.send", "hello"), try mistake("message.send", "=x"),
            try mistake("message.send", "channel=general", "clientId=7", "txt=hi"),
            try mistake("message.send", "channel=general", "clientId=7"),
            try mistake("user.me", "user=ann"),
            try mistake("channel.silence", "channel=general", "seconds=1.5"),
            try mistake("channel.hide", "channel=general", "allowAutoUnhide=yes"),
            try mistake("channel.update", "channel=general", "policy.send=operator"),
            try mistake("channel.update", "channel=general", "policy.sends=operators"),
            try mistake("channel.update", "channel=general", "policy=operators"),
            try mistake("channel.update", "channel=general", "metadata=[1]"),
            try mistake("channel.update", "channel=general", "displayName=a", "displayName=b"),
            try mistake("channel.update", "channel=general", "displayName.first=a"),
            try mistake("channel.query", "types=[1"),
            try mistake("message.send", "channel=general", "clientId=7", "text=a", "mentionees=bob,cat"),
            try mistake("message.send", "channel=general", "clientId=7", "text=a", #"mentionees={"type":"user","#),
        ]
        let mentionees = #"'mentionees=[{"type":"user","users":["bob"]}]'"#
        let policy = PolicyName.allCases.map(\.rawValue).joined(separator: ", ")
        let send = """
            channel, clientId, text, kind, customType, data, metadata, tags, parentId, mentionees, metaArrays, pushOption, targetLanguages, \
            isSilent
            """
        let expected = [
            "hello isn't field=value. roost call message.send --help lists its fields.",
            "=x isn't field=value. roost call message.send --help lists its fields.",
            "message.send has no field txt. Did you mean text? It has: \(send).",
            "message.send needs text=… roost call message.send --help lists its fields.",
            "user.me has no fields, so there is no user.",
            "seconds must be a whole number of at most 64 bits; it is '1.5'.",
            "allowAutoUnhide must be true or false; it is 'yes'.",
            "policy.send must be one of: everyone, invited, members, membersOnly, operators, owners, admins, nobody; it is 'operator'.",
            "policy has no field sends. Did you mean send? It has: \(policy).",
            "policy must be a JSON object, like '{…}', or be given by its fields: policy.NAME=VALUE; it is 'operators'.",
            "metadata must be a JSON object, like '{\"floor\": 3}'; it is '[1]'.",
            "displayName is given twice.", "displayName is text, and has no field first.",
            "types must be a JSON array, or values separated by commas; it is '[1'.",
            "mentionees must be a JSON list of objects, like \(mentionees); it is 'bob,cat'.",
            "mentionees must be a JSON list of objects, like \(mentionees); it is '{\"type\":\"user\",'.",
        ]
        #expect(found == expected)
    }

    @Test(
        "JSON that couldn't be kept as typed is refused, in a field and in a part of one, and no value is replaced"
    )
    func unkeepable() throws {
        let found = [
            try mistake("channel.update", "channel=general", #"metadata={"a":1,"a":2}"#),
            try mistake("channel.update", "channel=general", #"metadata.a={"b":{"c":1,"c":2}}"#),
            try mistake("channel.update", "channel=general", "metadata.n=12345678901234567890"),
            try mistake("channel.update", "channel=general", #"metadata={"n":0.1234567890123456789012}"#),
            try mistake("channel.update", "channel=general", #"metadata={"a":1,}"#),
            try mistake("stream.resume", "after=4", #"channels={"general":9,"general":8}"#),
            try mistake("channel.update", "channel=general", "metadata.n=1", "metadata.n.b=2"),
            try mistake("channel.update", "channel=general", "metadata.n=null", "metadata.n.b=2"),
        ]
        let inexact =
            "metadata.n can't be kept exactly: a whole number has at most 64 bits, any other at most 17 digits and the range of a double."
        let expected = [
            "metadata.a is given more than once.", "metadata.a.b.c is given more than once.", inexact, inexact,
            #"metadata must be a JSON object, like '{"floor": 3}'; it is '{"a":1,}'."#,
            "channels.general is given more than once.", "metadata.n is given twice.", "metadata.n is given twice.",
        ]
        #expect(found == expected)
        // Anything other than JSON is a text, as typed.
        let text = try json("channel.update", "channel=general", "metadata.a=[draft, 2", "metadata.b=1,", #"metadata.c={"a":1,}"#)
        #expect(text == #"{"channel":"general","metadata":{"a":"[draft, 2","b":"1,","c":"{\"a\":1,}"}}"#)
    }

    @Test("every operation can be listed, helped with and completed, with every field that it has")
    func help() throws {
        let listed = try CallHelp.list(nil)
        #expect(listed.count == Operations.all.count)
        for operation in OperationGuide.all {
            let offered = CallCompletions.fields(["roost", "call", operation.name], "")
            for field in operation.schema.fields {
                #expect(offered.contains { $0.hasPrefix(field.name) }, "\(operation.name) \(field.name)")
            }
        }
        let lines = CallHelp.lines(of: try #require(OperationGuide.named("channel.silence")))
        #expect(
            lines == [
                SilenceChannel.summary, "", "POST \(SilenceChannel.path), with the permission channel.silence", "",
                "field     type          limits", "channel   text          1 to 128 characters",
                "seconds?  whole number  -1 (forever); 1 to \(Limits.durationSeconds)", "", "A field marked ? is optional.", "",
                "Answer: Channel with \(Channel.fieldNames)",
            ])
    }

    @Test(
        "completions offer operations by their beginning, fields not yet given, and the values of fields that have few")
    func completions() {
        let words = ["roost", "call", "channel.hide", "channel=general"]
        #expect(CallCompletions.operations([], "message.s") == ["message.send", "message.sendAdmin"])
        #expect(CallCompletions.fields(words, "") == ["hidePreviousMessages=", "upTo=", "allowAutoUnhide="])
        #expect(CallCompletions.fields(words, "allowAutoUnhide=") == ["allowAutoUnhide=true", "allowAutoUnhide=false"])
        #expect(
            CallCompletions.fields(["roost", "call", "channel.update"], "policy.dis") == ["policy.discovery=", "policy.distinct="])
        #expect(CallCompletions.fields(["roost", "call", "nothing"], "") == [])
    }

    @Test("completions know a field and its value although bash makes three words of them")
    func splitWords() {
        func offered(_ words: String...) -> [String] {
            CallCompletions.fields(["roost", "call", "message.send"] + words, words.last ?? "")
        }
        #expect(offered("kind", "=", "te") == ["text"])
        #expect(offered("isSilent", "=") == ["true", "false"])
        #expect(offered("isSilent", "=", "f") == ["false"])
        #expect(offered("text", "=", "te") == [])
        #expect(offered("isSi") == ["isSilent="])
        // After a space, the word is a field, and none that was given.
        #expect(offered("isSilent", "=", "true", "isSi") == [])
        #expect(offered("isSilent", "=", "true", "cl") == ["clientId="])
        #expect(offered("isSilent", "=", "").contains("clientId="))
    }
}

extension Channel {
    fileprivate static var fieldNames: String { ((try? Schema.of(Channel.self))?.fields.map(\.name) ?? []).joined(separator: ", ") }
}
