import RoostAPI
import Testing

/// The kinds of rows are declared in their features' folders, and named nowhere else (decision 0044).
@Suite("Places that name rows")
struct RowPlaceTests {
    /// Kinds that streams themselves depend on: memberships decide which are followed.
    private static let ofStreams: Set<String> = ["memberships"]
    private static let targets: Set<String> = ["RoostAPI", "RoostCore", "RoostServer", "Roost"]

    /// The files that name rows of another feature, and why.
    private static let exceptions: [(reason: String, files: [String: Set<String>])] = [
        (
            "This is the list of kinds.",
            [
                "RoostAPI/Streams/StreamRow.swift": [
                    "Message", "PurgedMessage", "ChannelMention", "Member", "Invitation", "User", "Preferences", "OwnDeletion",
                    "ChannelDraft",
                ]
            ]
        ),
        (
            "A channel is shown with the caller's invitation and the newest message, and the invitation decides what the caller may do.",
            [
                "RoostAPI/Channels/Channel.swift": ["Invitation", "Message"],
                "RoostCore/Channels/ChannelAccess.swift": ["Invitation"],
                "Roost/Channels/ChannelItem.swift": ["Invitation", "Message"],
                "Roost/Channels/ChannelMembership.swift": ["Invitation"],
                "Roost/Channels/ChannelRow.swift": ["ChannelMention", "Invitation", "Message"],
                "Roost/Channels/LiveChannel.swift": ["Invitation", "Message"],
            ]
        ),
        (
            "The unread count is a number of messages, and deliveries are of messages.",
            [
                "RoostAPI/Reading/Unread.swift": ["ChannelMention", "Message", "PurgedMessage"],
                "Roost/Members/Member+Cache.swift": ["Message"],
                "Roost/Reading/Sync+Arrivals.swift": ["Message"],
            ]
        ),
        (
            "Pushes are for messages.",
            [
                "RoostAPI/Notifications/PushNotification.swift": ["Message"],
                "RoostCore/Notifications/Pushes.swift": ["Message"],
            ]
        ),
        (
            "Members are listed with their profiles.",
            [
                "RoostAPI/Members/Member.swift": ["User"],
                "RoostCore/Members/MemberListing.swift": ["User"],
                "Roost/Members/MemberItem.swift": ["User"],
            ]
        ),
        (
            "A watch is answered with watchers and members (ST-05).",
            [
                "RoostAPI/Watching/WatchOperations.swift": ["Member", "User"],
                "RoostCore/Watching/WatchHandlers.swift": ["Member"],
            ]
        ),
        (
            "The outbox holds messages: it is to hold any operation.",
            [
                "Roost/Sync/SyncDriver.swift": ["Message"],
                "Roost/Sync/SyncDriver+Outputs.swift": ["Message"],
                "Roost/Sync/SyncDriver+Requests.swift": ["Message"],
                "Roost/Sync/SyncTypes.swift": ["Message"],
            ]
        ),
        (
            "The app is notified of messages and invitations.",
            [
                "Roost/Live/ChatEvent.swift": ["Invitation", "Message", "PurgedMessage"],
                "Roost/Sync/Sync+Events.swift": ["Invitation", "PurgedMessage"],
            ]
        ),
        (
            "Answers are weighed by their types.",
            ["RoostServer/Budgets/AnswerWeight.swift": ["Message", "User", "Preferences"]]
        ),
        (
            "These are other types with the same name.",
            [
                "RoostServer/Cluster/ClusterPresence.swift": ["Message"],
                "RoostServer/Engine/FairQueue.swift": ["User"],
                "RoostServer/Gateway/UntrustedBytes.swift": ["Message"],
            ]
        ),
    ]

    @Test("only a feature's folders name its rows, except for places with a reason: all else goes through the list of kinds")
    func rowsByFeature() throws {
        var found: Set<String> = []
        for kind in RowKinds.standard.all where !Self.ofStreams.contains(kind.kind) {
            let type = "\(kind)"
            let declaration = SourceFile.sources.first {
                $0.target == "RoostAPI" && $0.code.contains("extension \(type): StreamRow")
            }
            let folder = try #require(declaration?.folders.first, "\(type) isn't declared in a feature's folder")
            for file in SourceFile.sources where Self.targets.contains(file.target) && file.folders.first != folder {
                if Self.names(type, "rows.\(kind.kind)", in: file) { found.insert("\(file.path) names \(type)") }
            }
        }
        let allowed = Self.exceptions.flatMap { exception in
            exception.files.flatMap { path, types in types.map { "Sources/\(path) names \($0)" } }
        }
        #expect(found.subtracting(allowed).sorted() == [])
        #expect(Set(allowed).subtracting(found).sorted() == [], "an exception without a use")
    }

    @Test("the reading of names distinguishes a type from longer names and from another type's member")
    func readsNames() {
        let lines: [Substring] = [
            "var a: [Message] = []", "Result<Message, any Error>", "Message.self", "extension Message: ContentSized {",
            "SendMessage(channel)", "MessageID", "Message_", "ClusterPresence.Message", "messages",
        ]
        #expect(lines.map { Self.isNamed("Message", in: $0) } == [true, true, true, true] + Array(repeating: false, count: 5))
    }

    /// Returns whether code of a file has the type, or rows of the kind as a property.
    private static func names(_ type: String, _ property: String, in file: SourceFile) -> Bool {
        guard file.code.contains(type) || file.code.contains(property) else { return false }
        return file.codeLines.contains { line in
            isNamed(type, in: line)
                || line.ranges(of: property).contains { line[$0.upperBound...].first?.isLetter != true }
        }
    }

    /// Returns whether a line has a type's name as a whole word that isn't a member's.
    private static func isNamed(_ type: String, in line: Substring) -> Bool {
        func isPartOfName(_ character: Character?) -> Bool {
            character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
        }
        return line.ranges(of: type).contains { place in
            let (before, after) = (line[..<place.lowerBound].last, line[place.upperBound...].first)
            return !isPartOfName(before) && before != "." && !isPartOfName(after)
        }
    }
}
