/// The step for permission names.
extension Migrations {
    /// Renames permissions that share their name with an operation or an event. Apps' roles contain permission names; a role's
    /// own name has no dot, so it can't be mistaken for one.
    @Sendable static func permissionNames(_ dialect: Dialect) -> [SQL] {
        let renamed = [
            ("read.mark", "reading.mark"), ("member.invite", "invitation.send"), ("channel.rateLimit", "channel.setRateLimit"),
            ("user.updateSelf", "user.updateMe"),
        ]
        return renamed.map { old, new in
            "UPDATE roles SET definition = REPLACE(definition, \("\"\(old)\""), \("\"\(new)\""))"
        }
    }
}
