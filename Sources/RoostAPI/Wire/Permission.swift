/// Something that a caller may be allowed to do (ledger §8.4). One table decides who has it; no handler decides by itself.
public enum Permission: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case configRead = "config.read"
    case configManage = "config.manage"
    case effectManage = "effect.manage"
    case userRead = "user.read"
    case userUpdateMe = "user.updateMe"
    case userManage = "user.manage"
    case streamRead = "stream.read"
    case channelCreate = "channel.create"
    case channelRead = "channel.read"
    case channelWatch = "channel.watch"
    case channelUpdate = "channel.update"
    case channelUpdatePolicy = "channel.updatePolicy"
    case channelSetPublic = "channel.setPublic"
    case channelDelete = "channel.delete"
    case channelFreeze = "channel.freeze"
    case channelSilence = "channel.silence"
    case channelSetRateLimit = "channel.setRateLimit"
    case channelHide = "channel.hide"
    case memberJoin = "member.join"
    case memberLeave = "member.leave"
    case memberList = "member.list"
    case memberListMuted = "member.listMuted"
    case memberListBanned = "member.listBanned"
    case memberSearchBanned = "member.searchBanned"
    case memberAdd = "member.add"
    case memberRemove = "member.remove"
    case memberSetRole = "member.setRole"
    case invitationSend = "invitation.send"
    case invitationList = "invitation.list"
    case invitationAnswer = "invitation.answer"
    case messageSend = "message.send"
    case messageSendWhileFrozen = "message.sendWhileFrozen"
    case messageEditOwn = "message.editOwn"
    case messageEditAny = "message.editAny"
    case messageDeleteOwn = "message.deleteOwn"
    case messageDeleteAny = "message.deleteAny"
    case historyRead = "history.read"
    case readingMark = "reading.mark"

    /// The permissions that concern a channel, which `ownCapabilities` lists.
    public static let ofChannel: [Permission] = allCases.filter(\.row.concernsChannel)

    /// The permissions that a role can grant: those that a type may leave to its operators.
    public static let grantable: [Permission] = allCases.filter { $0.row.grantedBy != .none }
}
