import Foundation
import NIOCore

/// The address of a client as limits count it: an IPv4 address, or a 64-bit IPv6 network, which one customer has.
struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
    fileprivate let bytes: [UInt8]

    /// Nil without an IP address.
    init?(_ address: NIOCore.SocketAddress?) {
        guard let text = address?.ipAddress else { return nil }
        self.init(text)
    }

    /// Reads an address from a header, without a port.
    init?(_ text: String) {
        guard let bytes = IPAddress.bytes(of: text) else { return nil }
        self.bytes = bytes.count == 4 ? bytes : Array(bytes.prefix(8))
    }

    var description: String {
        bytes.count == 4
            ? bytes.map(String.init).joined(separator: ".") : bytes.map { String($0, radix: 16) }.joined(separator: ":") + "::/64"
    }
}

/// IP addresses as bytes: 4, or 16.
enum IPAddress {
    static func bytes(of text: String) -> [UInt8]? {
        // A scoped address ends with the name of its network interface.
        let text = String(text.prefix { $0 != "%" })
        var four = [UInt8](repeating: 0, count: 4)
        if inet_pton(AF_INET, text, &four) == 1 { return four }
        var sixteen = [UInt8](repeating: 0, count: 16)
        guard inet_pton(AF_INET6, text, &sixteen) == 1 else { return nil }
        // An IPv4 address accepted by an IPv6 socket.
        return sixteen.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] ? Array(sixteen.suffix(4)) : sixteen
    }
}

/// The proxies whose information about a client's address is trusted.
package struct TrustedProxies: Sendable {
    private struct Network: Sendable {
        let bytes: [UInt8]
        let prefixLength: Int

        func holds(_ address: [UInt8]) -> Bool {
            guard address.count == bytes.count else { return false }
            let whole = prefixLength / 8
            guard address.prefix(whole) == bytes.prefix(whole) else { return false }
            let rest = prefixLength % 8
            guard rest > 0 else { return true }
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> rest)
            return address[whole] & mask == bytes[whole] & mask
        }
    }

    /// A list that can't be read.
    package struct Malformed: Error, CustomStringConvertible {
        let entry: String
        package var description: String {
            "trusted-proxies must be addresses or networks separated by commas, such as 10.0.0.0/8,::1; '\(entry)' isn't one."
        }
    }

    private var networks: [Network] = []

    static let none = TrustedProxies()

    private init() {}

    /// - Parameter list: Addresses and networks, `10.0.0.5` or `10.0.0.0/8`.
    /// - Throws: ``Malformed`` with the first entry that is neither.
    package init(_ list: [String]) throws(Malformed) {
        for entry in list {
            let parts = entry.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let bytes = IPAddress.bytes(of: parts[0]) else { throw Malformed(entry: entry) }
            var prefixLength = bytes.count * 8
            if parts.count == 2 {
                guard let length = Int(parts[1]), (0...prefixLength).contains(length) else { throw Malformed(entry: entry) }
                prefixLength = length
            }
            networks.append(Network(bytes: bytes, prefixLength: prefixLength))
        }
    }

    func holds(_ address: NIOCore.SocketAddress?) -> Bool {
        guard !networks.isEmpty, let text = address?.ipAddress, let bytes = IPAddress.bytes(of: text) else { return false }
        return holds(bytes)
    }

    private func holds(_ bytes: [UInt8]) -> Bool { networks.contains { $0.holds(bytes) } }

    /// Returns the client behind a chain of proxies: the last address of `X-Forwarded-For` that isn't a trusted proxy's. Everything before it may
    /// have been written by the client. Nil if there is none, or if the search meets something that isn't an address first.
    func client(forwardedFor values: [String]) -> ClientAddress? {
        for entry in values.joined(separator: ",").split(separator: ",").reversed() {
            var text = entry.drop { $0 == " " || $0 == "\t" }
            while let last = text.last, last == " " || last == "\t" { text.removeLast() }
            guard let bytes = IPAddress.bytes(of: String(text)) else { return nil }
            if !holds(bytes) { return ClientAddress(String(text)) }
        }
        return nil
    }
}
