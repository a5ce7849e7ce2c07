/// The named lists of texts that a message carries (SB-37), such as an app's own reactions or votes.
public enum MetaArrays {
    /// Throws if there are too many lists or values, a name or value is empty or too long, or a name is given twice.
    static func validate(_ arrays: [String: [String]]) throws(RoostError) {
        try validate(names: arrays.keys.sorted(), field: "metaArrays")
        for (_, values) in arrays.sorted(by: { $0.key < $1.key }) { try validate(values: values, field: "metaArrays") }
    }

    static func validate(names: [String], field: String) throws(RoostError) {
        guard names.count <= Limits.metaArrays else { throw .limitExceeded(field, limit: Limits.metaArrays, unit: "lists") }
        guard Set(names).count == names.count else { throw .invalidArgument(field, "must not contain a name twice") }
        for name in names {
            guard !name.isEmpty else { throw .invalidArgument(field, "must not contain an empty name") }
            try Limits.check(name, length: Limits.metaArrayNameLength, field: field)
        }
    }

    static func validate(values: [String], field: String) throws(RoostError) {
        guard values.count <= Limits.metaArrayValues else {
            throw .limitExceeded(field, limit: Limits.metaArrayValues, unit: "values")
        }
        for value in values {
            guard !value.isEmpty else { throw .invalidArgument(field, "must not contain an empty value") }
            try Limits.check(value, length: Limits.metaArrayValueLength, field: field)
        }
    }
}

extension [String: [String]] {
    /// The lists as they are stored: sorted by their bytes, without duplicates.
    package var sortedMetaArrays: [String: [String]] {
        mapValues { Set($0).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } }
    }
}

/// Creates, extends, shortens and removes the lists of a message (SB-37), atomically and in this order: `remove`, `create`, `add`, `removeValues`.
///
/// Adding something that exists, or removing something that doesn't, has no effect and isn't an error, so repeating an update does nothing.
/// An update that changes nothing produces no event. Everyone who may edit the message may do this.
/// - Throws: `not_message_owner` for someone else's message; `not_found` for one that is deleted, and for a list in `add` that doesn't
///   exist; `limit_exceeded` if the message would have more than 10 lists, or a list more than 100 values; the errors of `message.edit` about
///   the caller's rights.
public struct UpdateMetaArrays: Operation {
    public typealias Response = Message
    public static let name = "message.updateMetaArrays"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/channels/{channel}/messages/{message}/meta-arrays"
    public static let permission = Permission.messageEditOwn
    public static let summary = "Change the lists of texts of a message. For its author and for operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message whose lists are changed.
    public var message: MessageID
    /// Names of new lists, which are empty.
    public var create: [String]?
    /// Values to add to lists.
    public var add: [String: [String]]?
    /// Values to remove from lists.
    public var removeValues: [String: [String]]?
    /// Names of lists to remove.
    public var remove: [String]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID, message: MessageID, create: [String]? = nil, add: [String: [String]]? = nil,
        removeValues: [String: [String]]? = nil, remove: [String]? = nil
    ) {
        self.channel = channel
        self.message = message
        self.create = create
        self.add = add
        self.removeValues = removeValues
        self.remove = remove
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        guard create != nil || add != nil || removeValues != nil || remove != nil else {
            throw .invalidArgument("create", "must be given, or one of add, removeValues and remove")
        }
        try MetaArrays.validate(names: create ?? [], field: "create")
        try MetaArrays.validate(names: remove ?? [], field: "remove")
        for (field, arrays) in [("add", add), ("removeValues", removeValues)] {
            guard let arrays else { continue }
            try MetaArrays.validate(names: arrays.keys.sorted(), field: field)
            for (_, values) in arrays.sorted(by: { $0.key < $1.key }) { try MetaArrays.validate(values: values, field: field) }
        }
    }
}

extension UpdateMetaArrays: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channel", channel)
        json.member("message", message)
        json.member("create", create)
        json.member("add", add)
        json.member("removeValues", removeValues)
        json.member("remove", remove)
        json.endObject()
    }
}

extension MessageContent {
    /// Applies an update of the lists.
    ///
    /// - Throws: `not_found` for a list that doesn't exist, `limit_exceeded` if there would be too many.
    package mutating func apply(_ update: UpdateMetaArrays) throws(RoostError) {
        var arrays = metaArrays ?? [:]
        for name in update.remove ?? [] { arrays[name] = nil }
        for name in update.create ?? [] where arrays[name] == nil { arrays[name] = [] }
        for (name, values) in update.add ?? [:] {
            guard let list = arrays[name] else {
                throw RoostError(.notFound, "The message has no list of that name.", field: "add")
            }
            arrays[name] = list + values
        }
        for (name, values) in update.removeValues ?? [:] { arrays[name]?.removeAll(where: Set(values).contains) }
        arrays = arrays.sortedMetaArrays
        guard arrays.count <= Limits.metaArrays else { throw .limitExceeded("create", limit: Limits.metaArrays, unit: "lists") }
        guard arrays.values.allSatisfy({ $0.count <= Limits.metaArrayValues }) else {
            throw .limitExceeded("add", limit: Limits.metaArrayValues, unit: "values")
        }
        metaArrays = arrays.isEmpty ? nil : arrays
        try checkSize()
    }
}
