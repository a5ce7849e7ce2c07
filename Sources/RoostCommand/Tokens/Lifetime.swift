import ArgumentParser

/// How long something lasts, as people write it: `3600`, `90s`, `45m`, `12h`, `30d`.
struct Lifetime: ExpressibleByArgument {
    let seconds: Int

    init?(argument: String) {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = argument.last.flatMap { units[$0] }
        guard let number = Int(unit == nil ? argument[...] : argument.dropLast()) else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !overflow else { return nil }
        seconds = product
    }

    var defaultValueDescription: String { "\(seconds / 86_400)d" }
}
