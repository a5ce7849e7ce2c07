import Foundation
import RoostAPI

/// One look at a client's JSON before it is read: whether reading it costs too much, and whether an object has a key twice.
///
/// Foundation reads about a value a microsecond, and free JSON several times slower, since each value is tried as one type after another. A
/// megabyte of `[[],[],…` would hold an event loop for seconds. And of a key that stands twice it silently drops one value, while nothing here
/// is accepted and then dropped. The text isn't checked to be JSON.
struct JSONScan {
    /// The keys that lead to the first one that stands twice in its object; nil when there is none.
    private(set) var duplicate: [String]?

    private let bytes: [UInt8]
    private var valueCount = 0
    private var containers: [Container] = []
    /// The keys of the open objects, in their order.
    private var keys: [Key] = []

    /// An object or array that has begun and not ended.
    private struct Container {
        let isObject: Bool
        /// Where its keys begin.
        let firstKey: Int
        var awaitsKey: Bool
        /// Its keys as text, once there are many, or some that can be written in several ways.
        var names: Set<String>?
    }

    private struct Key {
        /// Between the quotes.
        let range: Range<Int>
        let hasEscapes: Bool
    }

    /// Keys of an object that are compared one by one.
    private static let comparedKeysMax = 16
    /// Characters of a key that are told.
    private static let toldCharactersMax = 64

    /// Throws `limit_exceeded` when the text has more than `Limits.jsonValues` values.
    init(_ bytes: [UInt8]) throws(RoostError) {
        self.bytes = bytes
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = readString(from: index)
            case UInt8(ascii: "{"): open(isObject: true)
            case UInt8(ascii: "["): open(isObject: false)
            case UInt8(ascii: "}"), UInt8(ascii: "]"): close()
            case UInt8(ascii: ","):
                valueCount += 1
                if let last = containers.indices.last { containers[last].awaitsKey = containers[last].isObject }
            default: break
            }
            guard valueCount <= Limits.jsonValues else {
                throw .limitExceeded("body", limit: Limits.jsonValues, unit: "JSON values")
            }
            index += 1
        }
    }

    /// Throws `invalid_argument` when an object has a key twice.
    func requireDistinctKeys() throws(RoostError) {
        if let duplicate { throw .duplicateKey(duplicate) }
    }

    private mutating func open(isObject: Bool) {
        valueCount += 1
        containers.append(Container(isObject: isObject, firstKey: keys.count, awaitsKey: isObject))
    }

    private mutating func close() {
        guard let closed = containers.popLast() else { return }
        keys.removeLast(keys.count - closed.firstKey)
    }

    /// - Returns: where the string's last quote stands.
    private mutating func readString(from start: Int) -> Int {
        var index = start + 1
        var hasEscapes = false
        var isASCII = true
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            if bytes[index] == UInt8(ascii: "\\") {
                hasEscapes = true
                index += 1
            } else if bytes[index] >= 0x80 {
                isASCII = false
            }
            index += 1
        }
        guard duplicate == nil, index < bytes.count, let last = containers.indices.last, containers[last].awaitsKey else {
            return index
        }
        containers[last].awaitsKey = false
        let key = Key(range: start + 1..<index, hasEscapes: hasEscapes)
        let isNew =
            isASCII && !hasEscapes && containers[last].names == nil ? isNewByBytes(key, in: last) : isNewByName(key, in: last)
        keys.append(key)
        if !isNew { duplicate = path }
        return index
    }

    private mutating func isNewByBytes(_ key: Key, in container: Int) -> Bool {
        let others = keys[containers[container].firstKey...]
        guard others.count < Self.comparedKeysMax else { return isNewByName(key, in: container) }
        return !others.contains { $0.range.count == key.range.count && bytes[$0.range] == bytes[key.range] }
    }

    /// Compares as a dictionary does: letters that look the same are the same.
    private mutating func isNewByName(_ key: Key, in container: Int) -> Bool {
        var names = containers[container].names ?? Set(keys[containers[container].firstKey...].map(text))
        // Held once only, or the set would be copied for each key.
        containers[container].names = nil
        let isNew = names.insert(text(key)).inserted
        containers[container].names = names
        return isNew
    }

    private func text(_ key: Key) -> String {
        let raw = String(decoding: bytes[key.range], as: UTF8.self)
        guard key.hasEscapes else { return raw }
        return (try? JSONDecoder().decode(String.self, from: Data("\"\(raw)\"".utf8))) ?? raw
    }

    /// The key of each open object at which the scan stands.
    private var path: [String] {
        containers.indices.compactMap { index in
            let end = index + 1 < containers.count ? containers[index + 1].firstKey : keys.count
            guard end > containers[index].firstKey else { return nil }
            return String(text(keys[end - 1]).prefix(Self.toldCharactersMax))
        }
    }
}

extension RoostError {
    static func duplicateKey(_ path: [String]) -> RoostError {
        .invalidArgument(path.joined(separator: "."), "is given more than once")
    }
}
