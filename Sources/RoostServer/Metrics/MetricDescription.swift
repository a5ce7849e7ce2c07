import RoostAPI
import RoostCore

/// A metric of `/metrics`: its name, kind, unit and labels, and its help text for operators.
struct MetricDescription: Sendable {
    enum Kind: Sendable, Equatable {
        case counter
        case gauge
        /// With the upper bounds of its buckets, in ascending order. The last one, `+Inf`, isn't listed.
        case histogram([Double])

        /// The type name in the text format.
        var word: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    /// What a metric counts. Units are base units and part of the name: at its end, or before `_total`.
    enum Unit: String, Sendable {
        case seconds, bytes
        /// Countable things, such as operations.
        case none = ""
    }

    /// A label and its possible values. A value is never an id that clients choose, so clients can't create series.
    struct Label: Sendable {
        let name: String
        let values: Set<String>

        /// The value for anything that isn't listed.
        static let otherValue = "other"
    }

    let name: String
    let kind: Kind
    let help: String
    let labels: [Label]

    var unit: Unit {
        let words = name.split(separator: "_")
        return (words.last == "total" ? words.dropLast().last : words.last).flatMap { Unit(rawValue: String($0)) } ?? .none
    }

    static func counter(_ name: String, _ help: String, labels: Label...) -> MetricDescription {
        MetricDescription(name: name, kind: .counter, help: help, labels: labels)
    }

    static func gauge(_ name: String, _ help: String, labels: Label...) -> MetricDescription {
        MetricDescription(name: name, kind: .gauge, help: help, labels: labels)
    }

    static func histogram(_ name: String, _ help: String, buckets: [Double], labels: Label...) -> MetricDescription {
        MetricDescription(name: name, kind: .histogram(buckets), help: help, labels: labels)
    }
}

extension MetricDescription.Label {
    static func values(_ name: String, _ values: String...) -> Self { .init(name: name, values: Set(values)) }

    /// The name of an operation in the table; `connect` is a socket that takes its place in the order of commits.
    static let operation = Self(
        name: "operation", values: Set(Operations.all.map { $0.name } + OperationName.others))

    /// The code of a refusal, as clients receive it.
    static let code = Self(name: "code", values: Set(RoostError.Code.allCases.map(\.rawValue)))

    /// `ok`, or the code of the refusal.
    static let result = Self(name: "result", values: code.values.union(["ok"]))

    static let effectKind = Self(name: "kind", values: Set(EffectKinds.all.map(\.name.rawValue)))

    static let transport = Self.values("transport", "http", "socket")

    static let queue = Self.values("queue", "write", "read")

    /// A WebSocket's close code, one that RFC 6455 names for a close frame or Roost's own; `none` for a connection that ended without one.
    static let closeCode = Self(
        name: "code",
        values: Set(
            CloseCode.allCases.map { String($0.rawValue) }
                + ["1000", "1001", "1002", "1003", "1007", "1008", "1009", "1010", "1011", "none"])
    )
}

/// Names in the label `operation` that aren't in the table of operations.
enum OperationName {
    /// A socket that takes its place in the order of commits.
    static let connect = "connect"
    /// A frame or a request that named no operation, or an unknown one.
    static let none = "none"
    /// Work that the server starts when it is due.
    static let effect = "effect"

    static let others = [connect, none, effect]
}
