public import ArgumentParser
import Foundation
public import RoostAPI

// What stands on a command line is read as what it is in the protocol. Whether an id is valid, the operation says.
extension ChannelID: ExpressibleByArgument {}
extension UserID: ExpressibleByArgument {}
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
