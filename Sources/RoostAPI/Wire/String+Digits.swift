extension String {
    /// A number in digits of a radix, with zeros in front of a number with fewer digits than the width.
    package init(_ value: some BinaryInteger, radix: Int, uppercase: Bool = false, width: Int) {
        let digits = String(value, radix: radix, uppercase: uppercase)
        self = String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
    }
}
