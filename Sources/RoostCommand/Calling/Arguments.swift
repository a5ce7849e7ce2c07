public import ArgumentParser
public import RoostAPI
import RoostServer

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
extension PushOption: ExpressibleByArgument {
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
struct JSONArgument {
    let value: JSONValue

    /// Reads what was typed for an option.
    ///
    /// - Throws: `ValidationError` for what isn't JSON, or can't be kept as it is.
    static func read(_ text: String) throws -> JSONArgument {
        do { return JSONArgument(value: try StrictJSON.value(of: Array(text.utf8))) } catch {
            throw ValidationError(error.message.safe())
        }
    }
}
