/// The step of permission names.
extension Migrations {
    /// Permissions that an operation shares its name with, or an event, were called otherwise. The roles of apps hold names of permissions; a role's
    /// own name has no dot, so that it can't be taken for one.
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
