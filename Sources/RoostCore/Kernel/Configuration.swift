public import RoostAPI

extension GetConfiguration: Handled {
    public func handle(in context: inout Context) throws -> AppConfiguration {
        try context.require(.configRead)
        return AppConfiguration(options: context.options, limits: Limits.table, roles: try context.transaction.roles())
    }
}
