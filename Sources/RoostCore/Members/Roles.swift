public import RoostAPI

extension ListRoles: Handled {
    public func handle(in context: inout Context) throws -> [RoleDefinition] {
        try context.require(.configRead)
        return try context.transaction.roles()
    }
}

extension PutRole: Handled {
    public func scope(for caller: Caller) -> Scope { .changingRules(for: caller) }

    public func handle(in context: inout Context) throws -> RoleDefinition {
        try context.require(.configManage)
        try refuseBuiltIn(role)
        let others = try context.transaction.ownRoles().filter { $0.role != role }
        guard others.count < Limits.channelRoles else {
            throw RoostError.limitExceeded("role", limit: Limits.channelRoles, unit: "custom roles")
        }
        let granted = Set(permissions)
        let definition = RoleDefinition(role: role, rank: rank, permissions: Permission.allCases.filter(granted.contains))
        guard try context.transaction.definedRole(role) != definition else { return definition }
        try context.transaction.perform(
            """
            INSERT INTO roles (role, definition) VALUES (\(role.rawValue), \(try StoredJSON.encode(definition)))
            ON CONFLICT (role) DO UPDATE SET definition = excluded.definition
            """)
        context.notify(.rulesChanged)
        return definition
    }
}

extension DeleteRole: Handled {
    public func scope(for caller: Caller) -> Scope { .changingRules(for: caller) }

    public func handle(in context: inout Context) throws -> Done {
        try context.require(.configManage)
        try refuseBuiltIn(role)
        guard try context.transaction.definedRole(role) != nil else { return Done() }
        try context.transaction.perform("DELETE FROM roles WHERE role = \(role.rawValue)")
        context.notify(.rulesChanged)
        return Done()
    }
}

private func refuseBuiltIn(_ role: ChannelRole) throws(RoostError) {
    guard RoleDefinition.builtIn(role) == nil else {
        throw RoostError(.immutableField, "Every channel has the role \(role): it can't be changed.", field: "role")
    }
}

extension Transaction {
    /// Returns a role's definition. A deleted role grants nothing.
    func role(_ role: ChannelRole) throws -> RoleDefinition {
        try definedRole(role) ?? RoleDefinition(role: role, rank: 0, permissions: [])
    }

    /// Returns the definition of an existing role; nil otherwise.
    func definedRole(_ role: ChannelRole) throws -> RoleDefinition? {
        if let builtIn = RoleDefinition.builtIn(role) { return builtIn }
        let stored: StoredRole?? = try first("SELECT definition FROM roles WHERE role = \(role.rawValue)") {
            try $0.optionalJSON()
        }
        return stored??.definition
    }

    /// Returns the app's own roles, in the order of their names.
    func ownRoles() throws -> [RoleDefinition] {
        try rows("SELECT definition FROM roles ORDER BY role") { row in
            guard let role: StoredRole = try row.optionalJSON() else {
                throw DamagedDatabase(what: "a role without definition")
            }
            return role.definition
        }
    }

    /// Returns every role that members can have.
    func roles() throws -> [RoleDefinition] { RoleDefinition.builtIn + (try ownRoles()) }
}

/// A role as stored: perhaps by a newer version, with permissions that don't exist here. Such permissions grant nothing that this version could do.
private struct StoredRole: Decodable {
    var role: ChannelRole
    var rank: Int
    var permissions: [String]

    var definition: RoleDefinition {
        RoleDefinition(role: role, rank: rank, permissions: permissions.compactMap(Permission.init(rawValue:)))
    }
}
