public import ArgumentParser
public import RoostAPI
import RoostServer

// Arguments of the command line are read as their types in the protocol. The operation checks whether an id is valid.
extension ChannelID: ExpressibleByArgument {}
extension UserID: ExpressibleByArgument {}
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

/// Reads numbers as typed. Anything else is refused with the expected form.
enum NumberArgument {
    /// Reads a whole number of any size. Its range is checked elsewhere.
    static func whole(_ text: String) throws -> Int {
        guard let number = Int(text) else { throw ValidationError("it must be a whole number") }
        return number
    }

    /// Reads the length of a page of any list.
    static func pageLimit(_ text: String) throws -> Int {
        let range = 1...Limits.memberPage.max
        guard let limit = Int(text), range.contains(limit) else {
            throw ValidationError("it must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return limit
    }

    /// Reads a position in a channel.
    static func seq(_ text: String) throws -> Seq {
        let range = 0...Limits.seqMax
        guard let seq = Seq(text), range.contains(seq) else {
            throw ValidationError("a seq is a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return seq
    }

    /// Reads a message's id.
    static func messageID(_ text: String) throws -> MessageID {
        guard let id = MessageID(text) else {
            throw ValidationError("a message's id is a number, as roost messages list shows it")
        }
        return id
    }
}

/// A path given in a command.
enum PathArgument {
    /// Refuses an empty path, which a shell makes of an unset variable: it would mean the current directory.
    ///
    /// - Throws: `ValidationError` that names the first option that is given and empty.
    static func refuseEmpty(_ options: (name: String, path: String?)...) throws {
        for option in options where option.path?.isEmpty == true { throw ValidationError("\(option.name) is empty.") }
    }
}

/// A JSON object, as typed.
struct JSONArgument {
    let value: JSONValue

    /// Reads an option's value.
    ///
    /// - Throws: `ValidationError` if it isn't a JSON object, or can't be stored unchanged.
    static func read(_ text: String) throws -> JSONArgument {
        let value: JSONValue
        do { value = try StrictJSON.value(of: Array(text.utf8)) } catch { throw ValidationError(error.clause.safe()) }
        guard case .object = value else { throw ValidationError("it must be a JSON object, like '{\"floor\": 3}'") }
        return JSONArgument(value: value)
    }
}
