import RoostAPI
import Testing

@Suite("Limits of channels")
struct ChannelLimitsTests {
    /// Returns an operation's refusal before anything is looked up; nil if it is valid.
    private func refusal(_ operation: some RoostAPI.Operation) -> RoostError? {
        do {
            try operation.validate()
            return nil
        } catch {
            return error
        }
    }

    private func code<O: RoostAPI.Operation>(_ operation: O, _ set: (inout O) -> Void) -> RoostError.Code? {
        var operation = operation
        set(&operation)
        return refusal(operation)?.code
    }

    @Test(
        "X-35 the name of a type is 1 to 64 of a to z, 0 to 9, '-' and '_'",
        arguments: [
            ("a", nil), ("my-type_2", nil), ("-", nil), (String(repeating: "a", count: 64), nil),
            (String(repeating: "a", count: 65), .limitExceeded), ("", .invalidArgument), ("A", .invalidArgument),
            ("a b", .invalidArgument), ("é", .invalidArgument), ("e\u{301}", .invalidArgument), ("a:b", .invalidArgument),
            ("a/b", .invalidArgument), ("a,b", .invalidArgument), ("\u{0}", .invalidArgument), ("\u{430}", .invalidArgument),
        ] as [(String, RoostError.Code?)])
    func typeNames(name: String, expected: RoostError.Code?) {
        let type = ChannelType(rawValue: name)
        let codes = [
            refusal(PutChannelType(type: type)), refusal(DeleteChannelType(type: type)), refusal(CreateChannel(type: type)),
            refusal(PutChannelType(type: "a", basedOn: type)),
        ].map { $0?.code }
        #expect(codes == Array(repeating: expected, count: 4))
    }

    @Test("AM-01 X-35 a channel has room for 1 to 300,000 members, wherever a policy says so")
    func maxMembers() {
        let values = [1, 300_000, 0, -1, .min, 300_001, .max]
        let codes = values.map { most in
            let changes = PolicyChanges(maxMembers: most)
            let each = [
                code(CreateChannel()) { $0.policy = changes }, code(UpdateChannel(channel: "c")) { $0.policy = changes },
                refusal(PutChannelType(type: "t", policy: changes))?.code,
            ]
            return Set(each).count == 1 ? each[0] : .internalError
        }
        #expect(
            codes == [nil, nil, .invalidArgument, .invalidArgument, .invalidArgument, .limitExceeded, .limitExceeded])
        var create = CreateChannel()
        create.policy = PolicyChanges(maxMembers: 300_001)
        #expect(refusal(create)?.field == "policy.maxMembers")
        #expect(refusal(create)?.limit == 300_000)
    }

    @Test("SB-03 AM-19 a channel can't override what its type has fixed, nor what only types decide")
    func fixedPolicies() throws {
        func refused(_ changes: PolicyChanges, _ type: ChannelType) throws -> RoostError? {
            let policy = try #require(ChannelPolicy.preset(type))
            do {
                try changes.validate(forChannelOf: policy, field: "policy")
                return nil
            } catch {
                return error
            }
        }
        var entry = PolicyChanges()
        entry.usersAtCreation = .added
        let found = try [
            refused(.makingPublic, .group), refused(.makingPublic, .live), refused(.makingPublic, .conversation),
            refused(PolicyChanges(send: .members), .broadcast), refused(PolicyChanges(send: .members), .community),
            refused(entry, .group), refused(PolicyChanges(), .standard),
        ]
        #expect(
            found.map { $0?.code } == [nil, .immutableField, .immutableField, .immutableField, nil, .invalidArgument, nil])
        #expect(
            found.map { $0?.field } == [
                nil, "policy.discovery", "policy.discovery", "policy.send", nil, "policy.usersAtCreation", nil,
            ])
    }

    @Test("SB-03 a channel's policy says each thing once: the last given value holds, and the rest stays")
    func merging() {
        let first = PolicyChanges(discovery: .members, join: .invited, maxMembers: 5)
        let both = first.merging(PolicyChanges(join: .everyone, send: .operators))
        #expect(both == PolicyChanges(discovery: .members, join: .everyone, send: .operators, maxMembers: 5))
        #expect(both.names == [.discovery, .join, .send, .maxMembers])
        let applied = ChannelPolicy.presets[0].applying(both)
        #expect([applied.discovery, applied.join, applied.send] == [.members, .everyone, .operators])
        #expect(ChannelPolicy.presets[0].applying(PolicyChanges()) == ChannelPolicy.presets[0])
    }

    @Test(
        "SB-08 a cover is an address of http or https of at most 2048 characters, or nothing",
        arguments: [
            ("", nil), ("https://example.com/a.png", nil), ("http://x", nil), ("ftp://x", .invalidArgument),
            ("javascript:alert(1)", .invalidArgument), ("HTTPS://x", .invalidArgument), ("https://a b", .invalidArgument),
            ("https://a\n", .invalidArgument), ("https://a\u{7f}", .invalidArgument), ("https://a\u{0}", .invalidArgument),
            ("https://" + String(repeating: "a", count: 2040), nil),
            ("https://" + String(repeating: "a", count: 2041), .limitExceeded),
        ] as [(String, RoostError.Code?)])
    func coverUrl(url: String, expected: RoostError.Code?) {
        let codes = [code(CreateChannel()) { $0.coverUrl = url }, code(UpdateChannel(channel: "c")) { $0.coverUrl = url }]
        #expect(codes == [expected, expected])
    }

    @Test("X-01 the attributes of a channel have their limits, at creation and later")
    func attributes() {
        func text(_ count: Int) -> String { String(repeating: "é", count: count) }
        let lengths: [(Int, WritableKeyPath<CreateChannel, String?>, WritableKeyPath<UpdateChannel, String?>)] = [
            (128, \.displayName, \.displayName), (128, \.avatarFileId, \.avatarFileId), (128, \.customType, \.customType),
            (20_000, \.data, \.data),
        ]
        var wrong: [String] = []
        for (length, ofCreation, ofUpdate) in lengths {
            for (count, expected) in [(length, nil), (length + 1, .limitExceeded)] as [(Int, RoostError.Code?)] {
                let codes = [
                    code(CreateChannel()) { $0[keyPath: ofCreation] = text(count) },
                    code(UpdateChannel(channel: "c")) { $0[keyPath: ofUpdate] = text(count) },
                ]
                if codes != [expected, expected] { wrong.append("\(length), \(count): \(codes)") }
            }
        }
        #expect(wrong == [])
        let tags = [20, 21].map { count in code(CreateChannel()) { $0.tags = (0..<count).map { "\($0)" } } }
        let tag = [64, 65].map { count in code(UpdateChannel(channel: "c")) { $0.tags = [text(count)] } }
        #expect(tags + tag == [nil, .limitExceeded, nil, .limitExceeded])
    }

    @Test("SB-12 a key is 1 to 128 characters")
    func idempotencyKey() {
        let codes = ["", "k", String(repeating: "k", count: 128), String(repeating: "k", count: 129)].map { key in
            code(CreateChannel()) { $0.idempotencyKey = key }
        }
        #expect(codes == [.invalidArgument, nil, nil, .limitExceeded])
    }

    @Test("SB-03 AM-36 settings that contradict each other are refused")
    func contradictions() {
        let codes = [
            code(CreateChannel()) { ($0.isPublic, $0.policy) = (true, PolicyChanges(join: .invited)) },
            code(CreateChannel()) { ($0.isPublic, $0.policy) = (true, PolicyChanges(send: .operators)) },
            code(UpdateChannel(channel: "c")) { ($0.isPublic, $0.policy) = (false, PolicyChanges(discovery: .everyone)) },
            code(UpdateChannel(channel: "c")) { $0.ifMetadataVersion = 0 },
            code(UpdateChannel(channel: "c")) { ($0.ifMetadataVersion, $0.metadata) = (0, [:]) },
        ]
        #expect(codes == [.invalidArgument, nil, .invalidArgument, .invalidArgument, nil])
    }

    @Test("D-07 AM-07 AM-08 a duration is 1 second to a hundred years, −1 forever")
    func seconds() {
        let values: [Int?] = [nil, -1, 1, 3_155_760_000, 0, -2, .min, 3_155_760_001, .max]
        let expected: [RoostError.Code?] = [
            nil, nil, nil, nil, .invalidArgument, .invalidArgument, .invalidArgument, .limitExceeded, .limitExceeded,
        ]
        #expect(values.map { refusal(SilenceChannel(channel: "c", seconds: $0))?.code } == expected)
        #expect(
            values.map { refusal(SetRateLimit(channel: "c", messages: 1, windowSeconds: 1, seconds: $0))?.code } == expected)
    }

    @Test("AM-08 a rate limit is 1 to 1000 messages in 1 to 3600 seconds")
    func rateLimit() {
        let values = [(1, 1), (1000, 3600), (0, 1), (1, 0), (1001, 1), (1, 3601), (.max, 1), (1, .min)]
        let codes = values.map { refusal(SetRateLimit(channel: "c", messages: $0.0, windowSeconds: $0.1))?.code }
        #expect(
            codes == [
                nil, nil, .invalidArgument, .invalidArgument, .limitExceeded, .limitExceeded, .limitExceeded, .invalidArgument,
            ])
    }
}
