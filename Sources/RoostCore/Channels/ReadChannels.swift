public import RoostAPI

extension GetChannel: Handled {
    public var isBrief: Bool { true }

    public func handle(in context: inout Context) throws -> ChannelView {
        try context.view(of: try context.require(.channelRead, in: channel))
    }
}
