import ArgumentParser

/// A duration as people write it: `3600`, `90s`, `45m`, `12h`, `30d`.
struct Lifetime {
    let seconds: Int

    init?(argument: String) {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = argument.last.flatMap { units[$0] }
        guard let number = Int(unit == nil ? argument[...] : argument.dropLast()) else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !overflow else { return nil }
        seconds = product
    }

    /// Reads an option's value.
    ///
    /// - Throws: `ValidationError` with the format.
    static func read(_ text: String) throws -> Lifetime {
        if let lifetime = Lifetime(argument: text) { return lifetime }
        throw ValidationError("a duration must be like 3600 (seconds), 90s, 45m, 12h or 30d")
    }

    /// The same, or `ever` or -1 for no end, which is -1 in the protocol.
    static func readOrEver(_ text: String) throws -> Lifetime {
        if text == "ever" { return Lifetime(seconds: -1) }
        let lifetime = try? read(text)
        if let lifetime, lifetime.seconds >= 1 || text == "-1" { return lifetime }
        throw ValidationError("a duration must be 1 second or more, like 3600, 90s, 45m, 12h or 30d, or ever")
    }

    init(seconds: Int) { self.seconds = seconds }
}
