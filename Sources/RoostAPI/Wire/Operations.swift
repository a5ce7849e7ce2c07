/// Every operation that exists. The server serves these and no others; a test fails when a type conforms and isn't listed.
public enum Operations {
    public static let all: [any Operation.Type] = [
        UpsertUser.self, GetUser.self, GetUsers.self, GetMe.self, UpdateMe.self,
        CreateChannel.self, GetChannel.self, UpdateChannel.self, DeleteChannel.self, ListMyChannels.self,
        JoinChannel.self, LeaveChannel.self, ListMembers.self,
        SendMessage.self, ListMessages.self, EditMessage.self, DeleteMessage.self,
        MarkRead.self, GetUnread.self, GetTotalUnread.self,
        WatchChannel.self, UnwatchChannel.self,
        GetChannelChanges.self, GetMyChanges.self, Resume.self,
    ]
}
