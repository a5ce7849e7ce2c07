extension String {
    /// An empty text takes a value away.
    var nilIfEmpty: String? { isEmpty ? nil : self }
}
