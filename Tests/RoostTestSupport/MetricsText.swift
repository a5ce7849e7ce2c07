/// The page `/metrics`, read as strictly as the text exposition format 0.0.4 allows: what a lenient reader would accept is an error here.
public struct MetricsText: Sendable {
    public struct Family: Sendable {
        public let name: String
        public let type: String
        public let help: String
        public internal(set) var samples: [Sample] = []
    }

    public struct Sample: Hashable, Sendable {
        public let name: String
        public let labels: [String: String]
        public let value: Double
    }

    public struct Malformed: Error, CustomStringConvertible {
        public let description: String
        init(_ what: String, line: Int) { description = "line \(line): \(what)" }
    }

    /// In the order of the page.
    public private(set) var families: [Family] = []

    public var samples: [Sample] { families.flatMap(\.samples) }

    /// The value of one series; nil if the page doesn't have it.
    public func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        samples.first { $0.name == name && $0.labels == labels }?.value
    }

    public init(_ text: String) throws {
        guard text.hasSuffix("\n") else { throw Malformed("the last line has no end", line: 0) }
        var seen: Set<[String]> = []
        for (index, line) in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            var reader = LineReader(line, number: index + 1)
            if line.hasPrefix("#") {
                try readComment(&reader)
            } else {
                let sample = try reader.sample()
                guard seen.insert([sample.name] + sample.labels.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }).inserted
                else {
                    throw reader.malformed("a series stands twice")
                }
                try add(sample, reader)
            }
        }
        for family in families where family.type == "histogram" { try Self.check(histogram: family) }
    }

    /// HELP opens a family, TYPE follows at once.
    private mutating func readComment(_ reader: inout LineReader) throws {
        try reader.expect("# ")
        let word = reader.word()
        try reader.expect(" ")
        let name = try reader.name(allowsColon: true)
        try reader.expect(" ")
        switch word {
        case "HELP":
            guard !families.contains(where: { $0.name == name }) else { throw reader.malformed("\(name) stands in two blocks") }
            let help = try reader.help()
            guard !help.isEmpty else { throw reader.malformed("\(name) has no help text") }
            families.append(Family(name: name, type: "", help: help))
        case "TYPE":
            guard let last = families.last, last.name == name, last.type.isEmpty else {
                throw reader.malformed("the type of \(name) doesn't follow its help text")
            }
            let type = reader.rest()
            guard ["counter", "gauge", "histogram", "summary", "untyped"].contains(type) else {
                throw reader.malformed("\(type) is no type")
            }
            families[families.count - 1] = Family(name: name, type: type, help: last.help)
        default: throw reader.malformed("# \(word)")
        }
    }

    private mutating func add(_ sample: Sample, _ reader: LineReader) throws {
        guard let family = families.last, !family.type.isEmpty else { throw reader.malformed("a sample without a type") }
        let suffixes = family.type == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
        guard suffixes.contains(where: { family.name + $0 == sample.name }) else {
            throw reader.malformed("\(sample.name) stands in the block of \(family.name)")
        }
        guard sample.name.hasSuffix("_bucket") == (sample.labels["le"] != nil) || family.type != "histogram" else {
            throw reader.malformed("le belongs to buckets")
        }
        if family.type != "gauge", !(sample.value >= 0) { throw reader.malformed("\(sample.name) is \(sample.value)") }
        families[families.count - 1].samples.append(sample)
    }

    /// Buckets rise, end with `+Inf`, and agree with the count.
    private static func check(histogram family: Family) throws {
        func without(_ sample: Sample) -> [String: String] { sample.labels.filter { $0.key != "le" } }
        for (labels, samples) in Dictionary(grouping: family.samples, by: without) {
            let buckets = samples.filter { $0.name.hasSuffix("_bucket") }
            let bounds = buckets.compactMap { $0.labels["le"] }.compactMap { $0 == "+Inf" ? .infinity : Double($0) }
            let count = samples.first { $0.name == family.name + "_count" }?.value
            let isWhole =
                bounds.count == buckets.count && bounds.last == .infinity && bounds == bounds.sorted()
                && Set(bounds).count == bounds.count && buckets.map(\.value) == buckets.map(\.value).sorted()
                && count == buckets.last?.value && samples.contains { $0.name == family.name + "_sum" }
            guard isWhole else { throw Malformed("the histogram \(family.name) \(labels) isn't whole", line: 0) }
        }
    }
}

/// Reads one line from its beginning.
private struct LineReader {
    private var line: Substring
    private let number: Int

    init(_ line: Substring, number: Int) {
        self.line = line
        self.number = number
    }

    func malformed(_ what: String) -> MetricsText.Malformed { .init(what, line: number) }

    mutating func expect(_ text: String) throws {
        guard line.hasPrefix(text) else { throw malformed("\(text) is expected before \(line)") }
        line = line.dropFirst(text.count)
    }

    mutating func word() -> String {
        let word = line.prefix { $0 != " " }
        line = line.dropFirst(word.count)
        return String(word)
    }

    mutating func rest() -> String {
        defer { line = "" }
        return String(line)
    }

    mutating func help() throws -> String { try unescaped(rest()[...], allowed: ["\\", "n"]) }

    mutating func name(allowsColon: Bool) throws -> String {
        let name = line.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || (allowsColon && $0 == ":")) }
        guard let first = name.first, !first.isNumber else { throw malformed("a name is expected before \(line)") }
        line = line.dropFirst(name.count)
        return String(name)
    }

    mutating func sample() throws -> MetricsText.Sample {
        let name = try name(allowsColon: true)
        var labels: [String: String] = [:]
        if line.hasPrefix("{") {
            try expect("{")
            while true {
                let label = try self.name(allowsColon: false)
                try expect("=\"")
                guard labels.updateValue(try labelValue(), forKey: label) == nil else { throw malformed("\(label) stands twice") }
                if line.hasPrefix("}") { break }
                try expect(",")
            }
            try expect("}")
        }
        try expect(" ")
        let text = rest()
        let special: [String: Double] = ["+Inf": .infinity, "-Inf": -.infinity, "NaN": .nan]
        let isNumber = text.wholeMatch(of: #/-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?/#) != nil
        guard let value = special[text] ?? (isNumber ? Double(text) : nil) else { throw malformed("\(text) isn't a number") }
        return .init(name: name, labels: labels, value: value)
    }

    private mutating func labelValue() throws -> String {
        var isEscaped = false
        let value = line.prefix { character in
            if isEscaped {
                isEscaped = false
                return true
            }
            isEscaped = character == "\\"
            return character != "\""
        }
        line = line.dropFirst(value.count)
        try expect("\"")
        return try unescaped(value, allowed: ["\\", "n", "\""])
    }

    private func unescaped(_ text: Substring, allowed: Set<Character>) throws -> String {
        var result = ""
        var isEscaped = false
        for character in text {
            if isEscaped {
                guard allowed.contains(character) else { throw malformed("\\\(character) is no escape") }
                result.append(character == "n" ? "\n" : character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else {
                result.append(character)
            }
        }
        if isEscaped { throw malformed("an escape without an end") }
        return result
    }
}
