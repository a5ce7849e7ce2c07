// The models that write themselves. Each names the members of its `Encodable` half, in the same order.

extension Identifier where Self: WireWritable {
    public func write(to json: inout JSONBytes) { json.string(rawValue) }
}
extension ChannelID: WireWritable {}
extension UserID: WireWritable {}
extension ClientID: WireWritable {}

extension MessageID: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.raw("\"")
        json.integer(rawValue)
        json.raw("\"")
    }
}

extension Timestamp: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.raw("\"")
        write(digits: &json)
        json.raw("\"")
    }
}

extension WireEnumeration where Self: WireWritable {
    public func write(to json: inout JSONBytes) { json.string(rawValue) }
}
extension HiddenState: WireWritable {}
extension InvitationState: WireWritable {}
extension Permission: WireWritable {}
extension ChannelPolicy.Audience: WireWritable {}
extension ChannelPolicy.Entry: WireWritable {}
extension ChannelPolicy.InvitationAudience: WireWritable {}
extension ChannelPolicy.Distinctness: WireWritable {}
extension ChannelRole: WireWritable {
    public func write(to json: inout JSONBytes) { json.string(rawValue) }
}
extension MembershipState: WireWritable {}
extension Event.Kind: WireWritable {}
extension ChannelType: WireWritable {
    public func write(to json: inout JSONBytes) { json.string(rawValue) }
}
extension StreamID: WireWritable {
    public func write(to json: inout JSONBytes) { json.string(description) }
}

extension JSONValue: WireWritable {
    public func write(to json: inout JSONBytes) {
        switch self {
        case .null: json.null()
        case .boolean(let value): json.boolean(value)
        case .integer(let value): json.integer(value)
        case .number(let value): json.number(value)
        case .string(let value): json.string(value)
        case .array(let values): json.array(values)
        case .object(let values):
            json.beginObject()
            for (key, value) in values.sorted(by: { $0.key < $1.key }) {
                json.key(key)
                value.write(to: &json)
            }
            json.endObject()
        }
    }
}

extension Message: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("messageId", messageId)
        json.member("channelId", channelId)
        json.member("seq", seq)
        json.member("changeSeq", changeSeq)
        json.member("sender", sender)
        json.member("clientId", clientId)
        json.member("text", text)
        json.member("customType", customType)
        json.member("data", data)
        json.member("metadata", metadata)
        json.member("tags", tags)
        json.member("parentId", parentId)
        json.member("createdAt", createdAt)
        json.member("editedAt", editedAt)
        json.member("deletedAt", deletedAt)
        json.endObject()
    }
}

extension MessagePage: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("messages", messages)
        json.member("hasOlder", hasOlder)
        json.member("hasNewer", hasNewer)
        json.member("seq", seq)
        json.endObject()
    }
}

extension Channel: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("type", type)
        json.member("isDistinct", isDistinct)
        json.member("isPublic", isPublic)
        json.member("isEphemeral", isEphemeral)
        json.memberOrNull("displayName", displayName)
        json.memberOrNull("avatarFileId", avatarFileId)
        json.memberOrNull("coverUrl", coverUrl)
        json.memberOrNull("customType", customType)
        json.memberOrNull("data", data)
        json.memberOrNull("metadata", metadata)
        json.member("metadataVersion", metadataVersion)
        json.memberOrNull("metadataUpdatedBy", metadataUpdatedBy)
        json.member("tags", tags)
        json.memberOrNull("policy", policy)
        json.member("isFrozen", isFrozen)
        json.member("isMuted", isMuted)
        json.memberOrNull("mutedUntil", mutedUntil)
        json.member("isRateLimited", isRateLimited)
        json.memberOrNull("rateLimit", rateLimit)
        json.memberOrNull("rateLimitWindowSeconds", rateLimitWindowSeconds)
        json.memberOrNull("rateLimitedUntil", rateLimitedUntil)
        json.member("memberCount", counters.memberCount)
        json.member("messageCount", counters.messageCount)
        json.member("ordinal", counters.ordinal)
        json.member("lastActivity", counters.lastActivity)
        json.memberOrNull("lastMessageAt", counters.lastMessageAt)
        json.memberOrNull("createdBy", createdBy)
        json.member("createdAt", createdAt)
        json.member("updatedAt", updatedAt)
        json.memberOrNull("deletedAt", deletedAt)
        json.member("seq", counters.seq)
        json.endObject()
    }
}

extension ChannelCounters: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("seq", seq)
        json.member("memberCount", memberCount)
        json.member("messageCount", messageCount)
        json.member("ordinal", ordinal)
        json.member("lastActivity", lastActivity)
        json.member("lastMessageAt", lastMessageAt)
        json.endObject()
    }
}

extension Member: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("role", role)
        json.member("state", state)
        json.member("joinedAt", joinedAt)
        json.member("joinedSeq", joinedSeq)
        json.member("changeSeq", changeSeq)
        json.endObject()
    }
}

extension Membership: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("role", role)
        json.member("state", state)
        json.member("joinedAt", joinedAt)
        json.member("joinedSeq", joinedSeq)
        json.member("readSeq", readSeq)
        json.member("readCount", readCount)
        json.member("lastReadAt", lastReadAt)
        json.member("historyFloor", historyFloor)
        json.member("hiddenState", hiddenState)
        json.member("hiddenOrdinal", hiddenOrdinal)
        json.member("mutedUntil", mutedUntil)
        json.member("bannedUntil", bannedUntil)
        json.member("channelSeq", channelSeq)
        json.member("userSeq", userSeq)
        json.endObject()
    }
}

extension Invitation: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("userId", userId)
        json.member("inviter", inviter)
        json.member("welcome", welcome)
        json.member("state", state)
        json.member("invitedAt", invitedAt)
        json.member("endedAt", endedAt)
        json.member("revision", revision)
        json.endObject()
    }
}

extension Preferences: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("autoAcceptInvitations", autoAcceptInvitations)
        json.endObject()
    }
}

extension User: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("displayName", displayName)
        json.member("avatarFileId", avatarFileId)
        json.member("metadata", metadata)
        json.member("createdAt", createdAt)
        json.member("updatedAt", updatedAt)
        json.member("version", version)
        json.member("deactivatedAt", deactivatedAt)
        json.endObject()
    }
}

extension Event: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        writeMembers(to: &json)
        json.endObject()
    }

    /// The members without the braces, for who puts others beside them.
    public func writeMembers(to json: inout JSONBytes) {
        json.member("event", kind)
        json.member("stream", stream)
        json.member("seq", seq)
        json.member("after", after)
        json.member("actor", actor)
        json.member("rows", rows)
    }
}

extension Changes: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("stream", stream)
        json.member("rows", rows)
        json.member("seq", seq)
        json.member("hasMore", hasMore)
        json.member("isFresh", isFresh)
        json.member("isIncomplete", isIncomplete)
        json.endObject()
    }
}

extension Resumption: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("user", user)
        json.member("channels", channels)
        json.member("hasMore", hasMore)
        json.endObject()
    }
}
