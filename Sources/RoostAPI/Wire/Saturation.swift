/// Sums of numbers that come from elsewhere.
///
/// A broken server or a damaged file may give any number that has the right type. A sum that traps would end the app, and one that wraps around would
/// put what comes last before everything. So such sums end at the nearest number that there is.
extension FixedWidthInteger {
    /// The sum, or the nearest number that there is.
    package func addingWithSaturation(_ other: Self) -> Self {
        let (sum, isBeyond) = addingReportingOverflow(other)
        guard isBeyond else { return sum }
        return other < 0 ? .min : .max
    }

    /// The difference, or the nearest number that there is.
    package func subtractingWithSaturation(_ other: Self) -> Self {
        let (difference, isBeyond) = subtractingReportingOverflow(other)
        guard isBeyond else { return difference }
        return other < 0 ? .max : .min
    }
}
