package import RoostAPI
package import RoostCore

/// Deletes a message for good, as an operation will. Anybody may.
package struct PurgeMessage: Handled {
    package typealias Response = Done
    package static let name = "test.purge"
    package static let method = HTTPMethod.delete
    package static let path = "/v1/channels/{channel}/messages/{message}/purge"
    package static let permission = Permission.messageDeleteAny
    package static let summary = "Deletes a message for good."

    package var channel: ChannelID
    package var message: MessageID

    package init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }

    package func validate() throws(RoostError) {}
    package func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    package func handle(in context: inout Context) throws -> Done {
        try context.purge(message, in: channel)
        return Done()
    }
}
