import RoostAPI
import RoostCore
import Testing

/// The names of operations, permissions and events on the wire. Decision 0056 has the rules.
@Suite("Names on the wire")
struct WireNameTests {
    /// The operations with a permission or an event that has another noun, and why.
    private static let exceptions: [(reason: String, pairs: [String])] = [
        (
            "types and roles are parts of the app's configuration, which is read and changed as a whole",
            [
                "type.list config.read", "type.put config.manage", "type.delete config.manage",
                "role.list config.read", "role.put config.manage", "role.delete config.manage",
            ]
        ),
        (
            "preferences and devices belong to the user, and a token to its user",
            [
                "device.signOut user.updateMe", "preferences.get user.read", "preferences.update user.updateMe",
                "token.revoke user.manage",
            ]
        ),
        (
            "what concerns only the caller takes the permission for the caller's own stream, whatever it is about",
            [
                "permission.explain stream.read", "channel.query stream.read", "channel.unwatch stream.read",
                "invitation.mine stream.read", "reading.total stream.read", "mention.list stream.read", "draft.list stream.read",
                "typing.stop stream.read",
                "channel.queryAndWatch stream.read", "reading.stop stream.read", "device.list stream.read",
            ]
        ),
        ("who may send may also type and signal", ["typing.start message.send", "signal.send message.send"]),
        ("only callers who manage users may ask about others", ["permission.explain user.manage"]),
        ("an explanation reveals no channel that the caller can't find", ["permission.explain channel.read"]),
        (
            "every operation that shows messages takes one permission, which has the ledger's name (§8.4)",
            [
                "message.list history.read", "message.get history.read", "message.edit history.read",
                "message.delete history.read", "message.updateMetaArrays history.read", "message.deleteMany history.read",
                "message.purge history.read", "message.undelete history.read", "message.deleteForMe history.read",
                "stream.channelChanges history.read", "reading.listReaders history.read",
            ]
        ),
        ("deleting a message for oneself is like hiding a channel", ["message.deleteForMe channel.hide"]),
        ("who may have a read position in a channel may have a draft there", ["draft.set reading.mark", "draft.get reading.mark"]),
        ("withdrawing somebody else's invitation is like removing a member", ["invitation.withdraw member.remove"]),
        (
            "one change ends an invitation and begins a membership",
            [
                "channel.create invitation.accepted", "member.add invitation.accepted",
                "invitation.send member.joined", "invitation.accept member.joined",
            ]
        ),
        (
            "a channel is created with its invitations, and deleted with them",
            ["channel.create invitation.sent", "channel.create invitation.received", "channel.delete invitation.withdrawn"]
        ),
        ("the own message of a sender who may not read counts as read", ["message.send reading.marked"]),
        (
            "a mention is a part of a message, and its end moves what the user's membership says of it",
            [
                "message.send mention.received", "message.edit mention.received", "message.edit reading.marked",
                "message.delete reading.marked", "message.purge reading.marked", "message.undelete mention.received",
            ]
        ),
    ]

    /// Permissions that operations require besides their own, depending on the call.
    private static let further = [
        "channel.create channel.read", "channel.update channel.setPublic", "channel.update channel.updatePolicy",
        "channel.query channel.read", "member.list member.listMuted", "member.list member.listBanned",
        "member.search member.listMuted", "member.search member.searchBanned", "invitation.withdraw member.remove",
        "message.send message.sendWhileFrozen", "message.edit message.editAny", "message.delete message.deleteAny",
        "message.edit history.read", "message.delete history.read", "message.deleteMany message.deleteAny",
        "message.deleteMany history.read", "message.purge message.deleteAny",
        "message.purge history.read", "message.undelete message.deleteAny", "message.undelete history.read",
        "message.deleteForMe history.read", "message.send message.mention", "message.edit message.mention",
        "message.sendAdmin message.mention", "message.updateMetaArrays message.editAny", "message.updateMetaArrays history.read",
        "permission.explain user.manage", "permission.explain channel.read",
    ]

    /// Each operation with each of its permissions.
    private static let required = Set(Operations.all.map { "\($0.name) \($0.permission.rawValue)" } + further)

    /// Each operation with each of its events, from the table of audiences, whose test produces them.
    private static func announced() throws -> Set<String> {
        let world = try AudienceWorld(type: .community)
        var pairs: Set<String> = []
        for heard in AudienceTests.cases {
            let operation = type(of: heard.step.make(world)).name
            // A signal is named for its contents, whichever operation caused it.
            for event in heard.expected.values.joined() where !event.hasSuffix(" signal") {
                pairs.insert("\(operation) \(firstWord(of: event))")
            }
        }
        return pairs
    }

    private static func firstWord(of text: String) -> String { String(text.prefix { $0 != " " }) }

    @Test("an operation, each of its permissions and each of its events have one noun, except for the listed exceptions")
    func nounsAreShared() throws {
        func noun(_ name: Substring) -> Substring { name.prefix { $0 != "." } }
        let pairs = try Self.announced().union(Self.required)
        let differing = pairs.filter { pair in Set(pair.split(separator: " ").map(noun)).count > 1 }
        #expect(differing.sorted() == Self.exceptions.flatMap { $0.pairs }.sorted())
    }

    /// The verbs of operations. A new one is added here if none of these says the same.
    private static let verbs: Set<String> = [
        "accept", "add", "create", "deactivate", "decline", "delete", "edit", "explain", "freeze", "get", "hide", "join", "leave",
        "list", "mark", "mute", "purge", "put", "query", "reactivate", "remove", "reset", "resume", "retry", "revoke", "search",
        "send",
        "set", "sign", "silence", "start", "stop",
        "undelete", "unfreeze", "unhide", "unmute", "unsilence", "unwatch", "update", "upsert", "watch", "withdraw",
    ]

    /// Operations that are named for what they answer with.
    private static let answers = [
        "invitation.mine", "reading.total", "reading.unread", "stream.channelChanges", "stream.myChanges", "user.me",
    ]

    @Test("an operation is named with a verb, or for its answer if it only reads")
    func operationsHaveVerbs() {
        let others = Operations.all.filter { operation in
            !Self.verbs.contains(String(operation.name.drop { $0 != "." }.dropFirst().prefix { $0.isLowercase }))
        }
        #expect(others.map { $0.name }.sorted() == Self.answers)
        #expect(others.allSatisfy { $0.isReadOnly })
    }

    @Test("every permission is required by an operation")
    func permissionsAreRequired() {
        let permissions = Set(Self.required.compactMap { $0.split(separator: " ").last.map(String.init) })
        #expect(Permission.allCases.map(\.rawValue).filter { !permissions.contains($0) } == [])
        let operations = Set(Operations.all.map { $0.name })
        #expect(Self.further.map(Self.firstWord).filter { !operations.contains($0) } == [])
    }
}
