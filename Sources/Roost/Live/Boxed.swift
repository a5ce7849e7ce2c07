/// A value that is copied as one reference and compared by reference first: after a change, most rows of a list are the same references as before.
final class Boxed<Value: Hashable & Sendable>: Hashable, Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }

    static func == (one: Boxed, other: Boxed) -> Bool { one === other || one.value == other.value }

    func hash(into hasher: inout Hasher) { value.hash(into: &hasher) }
}
