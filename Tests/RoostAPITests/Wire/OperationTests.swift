import Foundation
import RoostAPI
import Testing

@Suite("Operations")
struct OperationTests {
    static let names = Operations.all.map { $0.name }

    static func type(_ name: String) throws -> any RoostAPI.Operation.Type {
        try #require(Operations.all.first { $0.name == name })
    }

    @Test("operations, permissions and events are named by a noun in the singular and a word in camel case")
    func namesOnTheWire() {
        let names = Self.names + Permission.allCases.map(\.rawValue) + Event.Kind.allCases.map(\.rawValue)
        #expect(names.filter { $0.wholeMatch(of: /[a-z]+\.[a-z][a-zA-Z]*/) == nil } == [])
        // Preferences are one row.
        #expect(Set(names.map { $0.prefix { $0 != "." } }.filter { $0.hasSuffix("s") }) == ["preferences"])
    }

    @Test("a path has words of small letters, joined by hyphens, and fields in braces")
    func pathsAreWrittenInOneWay() {
        let shape = #/(?:/(?:[a-z0-9]+(?:-[a-z0-9]+)*|\{[a-z][a-zA-Z]*\}))+/#
        #expect(Operations.all.map { $0.path }.filter { $0.wholeMatch(of: shape) == nil } == [])
    }

    @Test("names and routes are unique, and paths name only fields that exist")
    func isOneTable() throws {
        let routes = Operations.all.map { $0.method.rawValue + " " + $0.path }
        let counts = [Set(Self.names).count, Set(routes).count]
        #expect(counts == [Self.names.count, routes.count])
        var unknown: [String] = []
        for type in Operations.all {
            let fields = Set(try Schema.of(type).fields.filter(\.isRequired).map(\.name))
            for part in type.path.split(separator: "/") where part.hasPrefix("{") {
                let name = String(part.dropFirst().dropLast())
                if !fields.contains(name) { unknown.append("\(type.name): \(name)") }
            }
        }
        #expect(unknown == [])
    }

    @Test("an operation and its answer mean the same after a round trip", arguments: names)
    func roundTrips(name: String) throws {
        func check<O: RoostAPI.Operation>(_ type: O.Type) throws {
            try roundTrip(O.self)
            try roundTrip(O.Response.self)
        }
        try check(Self.type(name))
    }

    @Test("frames, events and errors mean the same after a round trip")
    func framesRoundTrip() throws {
        try roundTrip(Event.self)
        try roundTrip(RoostError.self)
        try roundTrip(WelcomeFrame.self)
        try roundTrip(AuthenticateFrame.self)
        try roundTrip(ClosingFrame.self)
    }

    @Test("AM-04 every model that writes itself has the bytes of its Encodable half, with each of its fields and without")
    func modelsRoundTrip() throws {
        try roundTrip(Channel.self)
        try roundTrip(ChannelCounters.self)
        try roundTrip(PolicyChanges.self)
        try roundTrip(ChannelPolicy.self)
        try roundTrip(ChannelView.self)
        try roundTrip(Member.self)
        try roundTrip(Membership.self)
        try roundTrip(Invitation.self)
        try roundTrip(InvitationEntry.self)
        try roundTrip(MemberEntry.self)
        try roundTrip(MemberResult.self)
        try roundTrip(MemberResults.self)
        try roundTrip(DeadEffect.self)
        try roundTrip(Page<ChannelView>.self)
        try roundTrip(Page<MemberEntry>.self)
        try roundTrip(Page<ReadPosition>.self)
        try roundTrip([User].self)
        try roundTrip(Preferences.self)
        try roundTrip(Device.self)
        try roundTrip(SignedOutDevice.self)
        try roundTrip(RoleDefinition.self)
        try roundTrip(User.self)
        try roundTrip(UserSummary.self)
        try roundTrip(ChangedUsers.self)
        try roundTrip(UserPresence.self)
        try roundTrip(UserPresences.self)
        try roundTrip(Message.self)
        try roundTrip(ChannelMention.self)
        try roundTrip(Mentionee.self)
        try roundTrip(OwnDeletion.self)
        try roundTrip(UpdateMetaArrays.self)
        try roundTrip(ChannelDraft.self)
        try roundTrip(MessageVersion.self)
        try roundTrip(MessageVersions.self)
        try roundTrip(MessageResults.self)
        try roundTrip(PurgedMessage.self)
        try roundTrip(Rows.self)
        try roundTrip(Changes.self)
        try roundTrip(Resumption.self)
        try roundTrip(MessagePage.self)
        try roundTrip(PermissionExplanation.self)
        try roundTrip(RoostError.self)
        try roundTrip(Event.self)
        try roundTrip(PurgedMessage.self)
        try roundTrip(UnreadCount.self)
        try roundTrip(ReadPosition.self)
        try roundTrip(WatchedChannel.self)
        try roundTrip(WatcherPage.self)
        try roundTrip(ReadState.self)
        try roundTrip(Done.self)
        try roundTrip(UnwatchedFrame.self)
        try roundTrip(UnwatchedFrame.Unwatched.self)
        try roundTrip(ReadingEndedFrame.self)
        try roundTrip(ReadingEndedFrame.ReadingEnded.self)
    }

    @Test("every answer that is a page or another list writes itself, without Codable")
    func listsWriteThemselves() throws {
        func isWritten<O: RoostAPI.Operation>(_ type: O.Type) throws -> Bool {
            try !Self.isList(Schema.of(O.Response.self)) || O.Response.self is any WireWritable.Type
        }
        let wrong = try Operations.all.filter { try !isWritten($0) }.map { $0.name }
        // It has a list among other fields, and a client requests it once.
        #expect(wrong == ["config.get"])
    }

    /// Whether a shape is a list of objects, has one, or is a page.
    private static func isList(_ schema: Schema) -> Bool {
        if case .array = schema { return true }
        return schema.fields.contains { field in
            if case .array(.object(_, _)) = field.schema { return true }
            return field.name == "nextCursor"
        }
    }

    @Test("members' permissions by role are written in the order of the roles, whatever order they are kept in")
    func capabilitiesAreCanonical() throws {
        let roles = (0..<40).map { "role-\($0)" }
        func rows(_ roles: [String]) -> Rows {
            let capabilities = Dictionary(uniqueKeysWithValues: roles.map { ($0, [Permission.messageSend, .channelRead]) })
            return Rows(ownCapabilities: capabilities, capabilities: capabilities)
        }
        let written = try [roles, roles.reversed(), roles.shuffled()].map { try JSONWriter.bytes(of: rows($0)) }
        #expect(Set(written).count == 1)
        let one = Rows(
            ownCapabilities: ["general": [.channelRead, .messageSend]], capabilities: ["member": [], "owner": [.memberAdd]])
        #expect(
            String(decoding: try JSONWriter.bytes(of: one), as: UTF8.self)
                == #"{"ownCapabilities":{"general":["channel.read","message.send"]},"capabilities":{"member":[],"owner":["member.add"]}}"#
        )
    }

    /// Takes the shape from the type itself: a value that the shape allows must decode, and must come back the same.
    private func roundTrip<T: Codable & Hashable>(_ type: T.Type) throws {
        let schema = try Schema.of(type)
        for seed in 1...30 as ClosedRange<UInt64> {
            // A map's keys come in any order unless a value writes itself: only with one key do both halves have the same bytes.
            let hasOneOrder = seed.isMultiple(of: 2)
            var json = RandomJSON(random: SeededGenerator(seed: seed), keysOfMaps: hasOneOrder ? 0...1 : 0...3)
            let sent = Data(try JSONWriter.bytes(of: json.value(of: schema)))
            do {
                let first = try JSONDecoder().decode(type, from: sent)
                let written = try JSONWriter.bytes(of: first)
                let second = try JSONDecoder().decode(type, from: Data(written))
                // Types that read themselves leave to Foundation what isn't written plainly, and read everything else as Foundation does.
                if let plain = type as? any PlainReadable.Type {
                    var json = PlainJSON(written)
                    let read = plain.init(plainly: &json)
                    if let read { #expect(read as? T == first && json.isAtEnd, "\(type), seed \(seed)") }
                }
                guard first == second else {
                    #expect(first == second, "seed \(seed)")
                    return
                }
                guard try !hasOneOrder || written == JSONWriter.bytes(of: Plain(value: first)),
                    try isAsFoundationWrites(first, Data(written))
                else {
                    Issue.record("\(type), seed \(seed): written as \(String(decoding: written, as: UTF8.self))")
                    return
                }
            } catch {
                Issue.record("\(type), seed \(seed): \(String(decoding: sent, as: UTF8.self)): \(error)")
                return
            }
        }
    }

    /// A value written through its `Encodable` half, even if it can write itself.
    private struct Plain<Value: Encodable>: Encodable {
        let value: Value
        func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
    }

    private func isAsFoundationWrites(_ value: some Encodable, _ written: Data) throws -> Bool {
        let expected = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value), options: .fragmentsAllowed) as? NSObject
        return try JSONSerialization.jsonObject(with: written, options: .fragmentsAllowed) as? NSObject == expected
    }

    @Test("the shape of every operation and answer is known to the last field", arguments: names)
    func hasSchema(name: String) throws {
        func check<O: RoostAPI.Operation>(_ type: O.Type) throws -> [String] {
            let call = try Schema.of(O.self)
            let answer = try Schema.of(O.Response.self)
            return Self.vague(call, at: "call") + Self.vague(answer, at: "answer")
        }
        let vague = try check(Self.type(name))
        #expect(vague == [])
    }

    @Test("an operation and an answer without fields are an empty object")
    func withoutFields() throws {
        #expect(try JSONWriter.bytes(of: GetMe()) == JSONWriter.bytes(of: Done()))
        #expect(try JSONDecoder().decode(GetMe.self, from: Data("{}".utf8)) == GetMe())
        #expect(String(decoding: try JSONWriter.bytes(of: GetTotalUnread()), as: UTF8.self) == "{}")
    }

    /// The places in a shape that may hold anything, except for metadata, which may.
    private static func vague(_ schema: Schema, at path: String) -> [String] {
        switch schema {
        // A type without fields asks its decoder for nothing: there the shape is unknown, and `{}`.
        case .any: path.hasSuffix(".metadata") || !path.contains(".") ? [] : [path]
        case .array(let element), .map(let element): vague(element, at: path + "[]")
        case .object(_, let fields): fields.flatMap { vague($0.schema, at: path + "." + $0.name) }
        default: []
        }
    }

    @Test("AM-04 SB-09 a channel has all its fields on the wire, null where there is no value")
    func channelShape() throws {
        let now = Timestamp(milliseconds: 0)
        let counters = ChannelCounters(seq: 3, memberCount: 1, messageCount: 2, lastActivity: now)
        let channel = Channel(channelId: "c", type: .community, counters: counters, createdBy: nil, createdAt: now, updatedAt: now)
        let zero = #""1970-01-01T00:00:00.000Z""#
        let expected =
            #"{"channelId":"c","type":"community","isDistinct":false,"isPublic":false,"isEphemeral":false,"displayName":null,"#
            + #""avatarFileId":null,"coverUrl":null,"customType":null,"data":null,"metadata":null,"metadataVersion":0,"#
            + #""metadataUpdatedBy":null,"tags":[],"policy":null,"isFrozen":false,"isMuted":false,"mutedUntil":null,"#
            + #""isRateLimited":false,"rateLimit":null,"rateLimitWindowSeconds":null,"rateLimitedUntil":null,"memberCount":1,"#
            + #""messageCount":2,"ordinal":2,"lastActivity":\#(zero),"lastMessageAt":null,"createdBy":null,"createdAt":\#(zero),"#
            + #""updatedAt":\#(zero),"deletedAt":null,"seq":3}"#
        #expect(String(decoding: try JSONWriter.bytes(of: channel), as: UTF8.self) == expected)
    }

    @Test("R08 the positions of 20,000 channels fit one message with ids of 40 bytes, and those of 7,500 with the longest ids")
    func positions() throws {
        for (count, idLength) in [(Limits.channelsPerUserMax, 40), (7500, Limits.identifierLength)] {
            let ids = (1...count).map { String(repeating: "i", count: idLength - 5) + String($0 + 10_000) }
            let resume = Resume(after: 9_999_999, channels: Dictionary(uniqueKeysWithValues: ids.map { ($0, 9_999_999) }))
            try resume.validate()
            #expect(try JSONWriter.bytes(of: CallFrame(call: 1_000_000, with: resume)).count <= Limits.messageSizeBytes)
            #expect(count < Limits.jsonValues)
        }
    }

    @Test("every error code has a status of HTTP, except those that only the SDK throws")
    func statuses() {
        let statuses = RoostError.Code.allCases.map(\.httpStatus)
        #expect(statuses.compactMap { $0 }.allSatisfy { (400...599).contains($0) })
        let without = RoostError.Code.allCases.filter { $0.httpStatus == nil }
        #expect(without == [.queryInProgress, .storageInUse, .storageFailed, .storageGone, .storageNotDeleted])
    }

    @Test("isRetryable is for temporary trouble and rate limits, not for files that are gone, nor for mutes and silences")
    func retryable() {
        let retryable = RoostError.Code.allCases.filter { code in RoostError(code, "").isRetryable }
        let expected: [RoostError.Code] = [
            .notConnected, .storageInUse, .storageFailed, .storageNotDeleted, .rateLimited, .overloaded, .unavailable,
            .internalError,
        ]
        #expect(retryable == expected)
        let muted = RoostError(.muted, "", until: Timestamp(milliseconds: 60_000), retryAfterMilliseconds: 60_000)
        #expect(!muted.isRetryable && muted.retryAfter == .seconds(60))
    }
}
