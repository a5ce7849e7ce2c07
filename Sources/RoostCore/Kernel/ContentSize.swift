package import RoostAPI

/// A row whose written size is known before writing it: it bounds pages in bytes.
///
/// The parts that a client chose, texts and metadata, are measured with their escapes. The rest is small and counts as a few hundred bytes.
protocol ContentSized {
    /// How many bytes the row's content takes as it is written.
    var contentSizeBytes: Int { get }
}

extension Message: ContentSized {
    package var contentSizeBytes: Int {
        JSONBytes.sizeBytes(of: content.text) + (content.data.map(JSONBytes.sizeBytes) ?? 0) + (content.metadata?.sizeBytes ?? 0)
            + 200
    }
}

extension Channel: ContentSized {
    var contentSizeBytes: Int {
        (attributes.data.map(JSONBytes.sizeBytes) ?? 0) + (attributes.coverUrl.map(JSONBytes.sizeBytes) ?? 0)
            + (metadata?.sizeBytes ?? 0) + 800
    }
}

extension ChannelView: ContentSized {
    var contentSizeBytes: Int {
        channel.contentSizeBytes + (lastMessage?.contentSizeBytes ?? 0) + (invitation?.contentSizeBytes ?? 0) + 800
    }
}

extension User: ContentSized {
    package var contentSizeBytes: Int { (profile.metadata?.sizeBytes ?? 0) + 400 }
}

extension MemberEntry: ContentSized {
    var contentSizeBytes: Int { (user?.contentSizeBytes ?? 0) + 400 }
}

extension Invitation: ContentSized {
    package var contentSizeBytes: Int { (welcome.map(JSONBytes.sizeBytes) ?? 0) + 300 }
}

extension InvitationEntry: ContentSized {
    var contentSizeBytes: Int { invitation.contentSizeBytes + channel.contentSizeBytes }
}
