/// Sums of untrusted numbers.
///
/// A broken server or a damaged file may supply any number of the right type. A sum that traps would end the app, and one that wraps around
/// would sort the last item first. So such sums saturate.
extension FixedWidthInteger {
    /// The sum, or the nearest representable number.
    package func addingWithSaturation(_ other: Self) -> Self {
        let (sum, isBeyond) = addingReportingOverflow(other)
        guard isBeyond else { return sum }
        return other < 0 ? .min : .max
    }

    /// The difference, or the nearest representable number.
    package func subtractingWithSaturation(_ other: Self) -> Self {
        let (difference, isBeyond) = subtractingReportingOverflow(other)
        guard isBeyond else { return difference }
        return other < 0 ? .max : .min
    }
}
