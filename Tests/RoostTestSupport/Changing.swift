public import RoostAPI

/// An operation with some of its fields set: those that its initialiser doesn't take.
extension RoostAPI.Operation {
    public func with(_ change: (inout Self) -> Void) -> Self {
        var operation = self
        change(&operation)
        return operation
    }
}
