/// The list of all operations. The server serves these and no others; a test fails if a conforming type isn't listed.
public enum Operations {
    /// All operations: the routes, the calls of a socket and the API description are built from it.
    public static let all: [any Operation.Type] = [
        GetConfiguration.self, ListChannelTypes.self, PutChannelType.self, DeleteChannelType.self,
        ListRoles.self, PutRole.self, DeleteRole.self, ExplainPermission.self,
        ListDeadEffects.self, RetryEffect.self,
        UpsertUser.self, GetUser.self, GetUsers.self, ListChangedUsers.self, ListUserPresence.self, GetMe.self, UpdateMe.self,
        GetPreferences.self,
        UpdatePreferences.self,
        DeactivateUser.self, ReactivateUser.self, RevokeUserTokens.self, RevokeToken.self,
        ListDevices.self, SignOutDevice.self,
        CreateChannel.self, GetChannel.self, QueryChannels.self, UpdateChannel.self, DeleteChannel.self,
        FreezeChannel.self, UnfreezeChannel.self, SilenceChannel.self, UnsilenceChannel.self, SetRateLimit.self,
        RemoveRateLimit.self, HideChannel.self, UnhideChannel.self, ResetHistory.self, MuteNotifications.self,
        UnmuteNotifications.self,
        JoinChannel.self, LeaveChannel.self, ListMembers.self, SearchMembers.self, GetMember.self, AddMembers.self,
        RemoveMembers.self, SetMemberRole.self,
        InviteMembers.self, AcceptInvitation.self, DeclineInvitation.self, WithdrawInvitations.self, ListInvitations.self,
        ListMyInvitations.self,
        SendMessage.self, SendAdminMessage.self, ListMessages.self, GetMessage.self, EditMessage.self, UpdateMetaArrays.self,
        DeleteMessage.self, DeleteMessages.self, DeleteMessagesForMe.self, PurgeMessage.self, UndeleteMessage.self,
        ListMessageVersions.self, ListMentions.self,
        SetDraft.self, GetDraft.self, ListDrafts.self,
        MarkRead.self, MarkUnread.self, MarkDelivered.self, StartReading.self, StopReading.self, GetUnread.self,
        GetTotalUnread.self, ListReaders.self,
        WatchChannel.self, QueryAndWatchChannels.self, UnwatchChannel.self, ListWatchers.self, StartTyping.self, StopTyping.self,
        SendSignal.self,
        GetChannelChanges.self, GetMyChanges.self, Resume.self,
    ]
}
