package import Foundation

/// Names in a server's answers that are newer than this version, such as a permission that was added since.
///
/// A client leaves them out and reads the rest of the answer. Calls, and what a server stores, are read strictly: a server would otherwise carry out
/// or write back only a part of what it was given.
package enum NewerValues {
    /// The key of a decoder's `userInfo` for whether to leave them out; without it they can't be read.
    fileprivate static let userInfoKey = CodingUserInfoKey(rawValue: "roost.leavesOutNewerValues")

    static func areLeftOut(by decoder: any Decoder) -> Bool {
        userInfoKey.flatMap { decoder.userInfo[$0] as? Bool } ?? false
    }
}

extension JSONDecoder {
    /// A decoder for a server's answers, which leaves out what is newer than this version.
    package static var forAnswers: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.leaveOutNewerValues()
        return decoder
    }

    /// Makes the decoder read a server's answers, without what is newer than this version.
    package func leaveOutNewerValues() {
        if let key = NewerValues.userInfoKey { userInfo[key] = true }
    }
}

/// A list of names, without newer ones if the decoder leaves them out.
struct KnownNames<Name: WireEnumeration & Decodable> {
    let value: [Name]
}

extension KnownNames: Decodable {
    init(from decoder: any Decoder) throws {
        if NewerValues.areLeftOut(by: decoder) {
            value = try [String](from: decoder).compactMap { Name.known($0) }
        } else {
            value = try [Name](from: decoder)
        }
    }
}

extension KnownNames: SchemaDescribed {
    static var schema: Schema { .array(Name.schema) }
    static var schemaExample: KnownNames { KnownNames(value: []) }
}

/// One name; nil for a newer one if the decoder leaves it out.
struct KnownName<Name: WireEnumeration & Decodable> {
    let value: Name?
}

extension KnownName: Decodable {
    init(from decoder: any Decoder) throws {
        value = try NewerValues.areLeftOut(by: decoder) ? Name.known(String(from: decoder)) : Name(from: decoder)
    }
}

extension KnownName: SchemaDescribed {
    static var schema: Schema { Name.schema }
    static var schemaExample: KnownName { KnownName(value: Name.schemaExample) }
}
