/// Something that a caller may be allowed to do (ledger §8.4). One table decides who has it; no handler decides by itself.
public enum Permission: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// Read the app's options, types and roles.
    case configRead = "config.read"
    /// Change them.
    case configManage = "config.manage"
    /// See and retry background work that failed for good.
    case effectManage = "effect.manage"
    /// Read profiles of users.
    case userRead = "user.read"
    /// Change the own profile and preferences.
    case userUpdateMe = "user.updateMe"
    /// Create, change and deactivate users, and revoke their tokens.
    case userManage = "user.manage"
    /// Learn what changed in the streams that the caller follows.
    case streamRead = "stream.read"
    /// Create channels of a type.
    case channelCreate = "channel.create"
    /// Read a channel without its messages.
    case channelRead = "channel.read"
    /// Watch a channel.
    case channelWatch = "channel.watch"
    /// Change a channel's attributes.
    case channelUpdate = "channel.update"
    /// Have a channel differ from its type.
    case channelUpdatePolicy = "channel.updatePolicy"
    /// Make a channel public or private.
    case channelSetPublic = "channel.setPublic"
    /// Delete a channel.
    case channelDelete = "channel.delete"
    /// Freeze a channel, and end that.
    case channelFreeze = "channel.freeze"
    /// Silence a channel, and end that.
    case channelSilence = "channel.silence"
    /// Limit a channel's messages in a time, and end that.
    case channelSetRateLimit = "channel.setRateLimit"
    /// Hide a channel from the own lists.
    case channelHide = "channel.hide"
    /// Become a member without being added.
    case memberJoin = "member.join"
    /// Give up the own membership.
    case memberLeave = "member.leave"
    /// List and search members.
    case memberList = "member.list"
    /// See who is muted, and until when.
    case memberListMuted = "member.listMuted"
    /// See who is banned, and until when.
    case memberListBanned = "member.listBanned"
    /// Search among the banned.
    case memberSearchBanned = "member.searchBanned"
    /// Make others members.
    case memberAdd = "member.add"
    /// End the membership of others.
    case memberRemove = "member.remove"
    /// Give members a role.
    case memberSetRole = "member.setRole"
    /// Invite users.
    case invitationSend = "invitation.send"
    /// See a channel's invitations.
    case invitationList = "invitation.list"
    /// Accept or decline the own invitation.
    case invitationAnswer = "invitation.answer"
    /// Send messages.
    case messageSend = "message.send"
    /// Send messages during a freeze.
    case messageSendWhileFrozen = "message.sendWhileFrozen"
    /// Send the app's own messages.
    case messageSendAdmin = "message.sendAdmin"
    /// Mention members, or the channel.
    case messageMention = "message.mention"
    /// Edit own messages.
    case messageEditOwn = "message.editOwn"
    /// Edit anybody's messages.
    case messageEditAny = "message.editAny"
    /// Delete own messages.
    case messageDeleteOwn = "message.deleteOwn"
    /// Delete anybody's messages.
    case messageDeleteAny = "message.deleteAny"
    /// Read what messages said before they were edited or deleted.
    case messageReadVersions = "message.readVersions"
    /// Read messages.
    case historyRead = "history.read"
    /// Mark messages as read.
    case readingMark = "reading.mark"

    /// The permissions that concern a channel, which `ownCapabilities` lists.
    public static let ofChannel: [Permission] = allCases.filter(\.row.concernsChannel)

    /// The permissions that a role can grant: those that a type may leave to its operators.
    public static let grantable: [Permission] = allCases.filter { $0.row.grantedBy != .none }
}
