public import ArgumentParser
import Foundation
public import RoostAPI

// Arguments of the command line are read as their types in the protocol. The operation checks whether an id is valid.
extension ChannelID: ExpressibleByArgument {}
extension UserID: ExpressibleByArgument {}
extension MessageID: ExpressibleByArgument {}
extension MessageKind: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(rawValue: argument)
        guard isKnown else { return nil }
    }
}
extension ChannelType: ExpressibleByArgument {}
extension ChannelRole: ExpressibleByArgument {}
extension MembershipFilter: ExpressibleByArgument {}
extension HiddenFilter: ExpressibleByArgument {}
extension ChannelSort: ExpressibleByArgument {}
extension SortDirection: ExpressibleByArgument {}
extension MemberFilter: ExpressibleByArgument {}
extension MemberSort: ExpressibleByArgument {}

/// A JSON object, as it is typed.
struct JSONArgument: ExpressibleByArgument {
    let value: JSONValue

    init?(argument: String) {
        guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(argument.utf8)) else { return nil }
        self.value = value
    }
}
