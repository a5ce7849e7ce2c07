extension String {
    /// Nil for an empty text, which removes a value.
    var nilIfEmpty: String? { isEmpty ? nil : self }
}

extension Optional {
    /// Returns the new value, or this one if none is given.
    func replaced(by new: Wrapped?) -> Wrapped? { new ?? self }
}

extension String? {
    /// The same for a text. An empty one removes the value.
    func replaced(by new: String?) -> String? { (new ?? self)?.nilIfEmpty }
}
