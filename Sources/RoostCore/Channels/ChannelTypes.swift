public import RoostAPI

extension ListChannelTypes: Handled {
    public func handle(in context: inout Context) throws -> [ChannelPolicy] {
        try context.require(.configRead)
        return ChannelPolicy.presets + (try context.transaction.ownPolicies())
    }
}

extension PutChannelType: Handled {
    public func scope(for caller: Caller) -> Scope { .changingRules(for: caller) }

    public func handle(in context: inout Context) throws -> ChannelPolicy {
        try context.require(.configManage)
        guard ChannelPolicy.preset(type) == nil else {
            throw RoostError(.immutableField, "\(type) is a built-in type: choose another name.", field: "type")
        }
        guard let base = ChannelPolicy.preset(basedOn ?? .community) else {
            throw RoostError(.notFound, "There is no preset \(basedOn ?? .community).", field: "basedOn")
        }
        var policy = base.applying(policy ?? PolicyChanges())
        policy.type = type
        policy.fixed = []
        let others = try context.transaction.ownPolicies().filter { $0.type != type }
        guard others.count < Limits.channelTypes else {
            throw RoostError.limitExceeded("type", limit: Limits.channelTypes, unit: "custom channel types")
        }
        guard try context.transaction.policy(of: type) != policy else { return policy }
        try context.transaction.perform(
            """
            INSERT INTO channel_types (type, policy) VALUES (\(type.rawValue), \(try StoredJSON.encode(policy)))
            ON CONFLICT (type) DO UPDATE SET policy = excluded.policy
            """)
        context.notify(.rulesChanged)
        return policy
    }
}

extension DeleteChannelType: Handled {
    public func scope(for caller: Caller) -> Scope { .changingRules(for: caller) }

    public func handle(in context: inout Context) throws -> Done {
        try context.require(.configManage)
        guard ChannelPolicy.preset(type) == nil else {
            throw RoostError(.immutableField, "\(type) is a built-in type.", field: "type")
        }
        let inUse = try context.transaction.first("SELECT 1 FROM channels WHERE type = \(type.rawValue) LIMIT 1") { _ in true }
        guard inUse == nil else {
            throw RoostError(.immutableField, "There are channels of the type \(type).", field: "type")
        }
        try context.transaction.perform("DELETE FROM channel_types WHERE type = \(type.rawValue)")
        return Done()
    }
}

extension Transaction {
    /// The policy of a preset or of an operator's own type; nil for an unknown type.
    func policy(of type: ChannelType) throws -> ChannelPolicy? {
        if let preset = ChannelPolicy.preset(type) { return preset }
        let stored: ChannelPolicy?? = try first("SELECT policy FROM channel_types WHERE type = \(type.rawValue)") {
            try $0.optionalJSON()
        }
        return stored ?? nil
    }

    /// The operator's own types, in the order of their names.
    func ownPolicies() throws -> [ChannelPolicy] {
        try rows("SELECT policy FROM channel_types ORDER BY type") { row in
            guard let policy: ChannelPolicy = try row.optionalJSON() else { throw DamagedDatabase(what: "a type without policy") }
            return policy
        }
    }
}

extension ChannelID {
    /// The type and channel that an id of the form `type:id` names (ST-03). A channel whose own id has that form is found first.
    var alias: (type: ChannelType, channel: ChannelID)? {
        guard let colon = rawValue.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let rest = rawValue[rawValue.utf8.index(after: colon)...]
        return rest.isEmpty ? nil : (ChannelType(rawValue: String(rawValue[..<colon])), ChannelID(String(rest)))
    }

    /// The id without prefixes that could be type names: equal for all names of one channel.
    var withoutTypes: ChannelID {
        var id = self
        while let alias = id.alias { id = alias.channel }
        return id
    }
}
