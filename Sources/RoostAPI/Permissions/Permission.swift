/// Something that a caller may be allowed to do (ledger §8.4). One table decides who has it; handlers never decide.
public enum Permission: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// Read the app's options, types and roles.
    case configRead = "config.read"
    /// Change them.
    case configManage = "config.manage"
    /// See and retry permanently failed background work.
    case effectManage = "effect.manage"
    /// Read profiles of users.
    case userRead = "user.read"
    /// Change one's own profile and preferences.
    case userUpdateMe = "user.updateMe"
    /// Create, change and deactivate users, and revoke their tokens.
    case userManage = "user.manage"
    /// Read changes of the streams that the caller follows.
    case streamRead = "stream.read"
    /// Create channels of a type.
    case channelCreate = "channel.create"
    /// Read a channel without its messages.
    case channelRead = "channel.read"
    /// Watch a channel.
    case channelWatch = "channel.watch"
    /// Change a channel's attributes.
    case channelUpdate = "channel.update"
    /// Make a channel's policy differ from its type's.
    case channelUpdatePolicy = "channel.updatePolicy"
    /// Make a channel public or private.
    case channelSetPublic = "channel.setPublic"
    /// Delete a channel.
    case channelDelete = "channel.delete"
    /// Freeze and unfreeze a channel.
    case channelFreeze = "channel.freeze"
    /// Silence a channel, and end the silence.
    case channelSilence = "channel.silence"
    /// Set and remove a channel's rate limit.
    case channelSetRateLimit = "channel.setRateLimit"
    /// Hide a channel from one's own lists.
    case channelHide = "channel.hide"
    /// Become a member without being added.
    case memberJoin = "member.join"
    /// Leave a channel.
    case memberLeave = "member.leave"
    /// List and search members.
    case memberList = "member.list"
    /// See muted members, and when their mutes end.
    case memberListMuted = "member.listMuted"
    /// See banned users, and when their bans end.
    case memberListBanned = "member.listBanned"
    /// Search banned users.
    case memberSearchBanned = "member.searchBanned"
    /// Add members.
    case memberAdd = "member.add"
    /// Remove members.
    case memberRemove = "member.remove"
    /// Give members a role.
    case memberSetRole = "member.setRole"
    /// Invite users.
    case invitationSend = "invitation.send"
    /// See a channel's invitations.
    case invitationList = "invitation.list"
    /// Accept or decline one's own invitation.
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
    /// Edit anyone's messages.
    case messageEditAny = "message.editAny"
    /// Delete own messages.
    case messageDeleteOwn = "message.deleteOwn"
    /// Delete anyone's messages.
    case messageDeleteAny = "message.deleteAny"
    /// Read earlier versions of edited or deleted messages.
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
