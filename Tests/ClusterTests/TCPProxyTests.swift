import NIOCore
import NIOPosix
import RoostTestSupport
import Testing

/// The network that the cluster's tests break, and the load balancer in front of their nodes.
@Suite struct TCPProxyTests {
    @Test("the proxy forwards both directions, passes on the end of one, and keeps bytes that arrive after it")
    func carries() async throws {
        let target = try await Target.start(name: "a")
        let proxy = try await TCPProxy.start(targets: [target.port])
        let client = try await ClientSocket.connect(port: proxy.port)
        #expect(await client.line() == "a")
        try await client.send("hello\n")
        #expect(await client.line() == "hello")
        try await client.finishSending()
        // The target answers the end with a last line.
        #expect(await client.line() == "bye from a")
        #expect(await client.line() == nil)
        await proxy.stop()
        await target.stop()
    }

    @Test("connections go to the targets in turn, skipping those that refuse; nowhere if all do")
    func balances() async throws {
        let targets = [try await Target.start(name: "a"), try await Target.start(name: "b"), try await Target.start(name: "c")]
        let proxy = try await TCPProxy.start(targets: targets.map(\.port))
        #expect(try await names(of: 6, through: proxy) == ["a", "b", "c", "a", "b", "c"])
        await targets[1].stop()
        #expect(try await names(of: 3, through: proxy) == ["a", "c", "c"])
        proxy.setTargets([targets[0].port])
        #expect(try await names(of: 2, through: proxy) == ["a", "a"])
        await targets[0].stop()
        #expect(try await names(of: 1, through: proxy) == [nil])
        await targets[2].stop()
        await proxy.stop()
    }

    @Test("a random order is the same for the same seed")
    func drawsBySeed() async throws {
        let targets = [try await Target.start(name: "a"), try await Target.start(name: "b"), try await Target.start(name: "c")]
        var drawn: [[String?]] = []
        for seed: UInt64 in [7, 7] {
            let proxy = try await TCPProxy.start(targets: targets.map(\.port), order: .random(seed: seed))
            drawn.append(try await names(of: 20, through: proxy))
            await proxy.stop()
        }
        #expect(drawn[0] == drawn[1])
        #expect(Set(drawn[0]) == ["a", "b", "c"])
        for target in targets { await target.stop() }
    }

    @Test("cut connections end on both sides; refused ones end at once while others stay; swallowed ones receive nothing")
    func fails() async throws {
        let target = try await Target.start(name: "a")
        let proxy = try await TCPProxy.start(targets: [target.port])
        let standing = try await ClientSocket.connect(port: proxy.port)
        #expect(await standing.line() == "a")

        proxy.setMode(.refuse)
        #expect(try await names(of: 1, through: proxy) == [nil])
        try await standing.send("still here\n")
        #expect(await standing.line() == "still here")

        proxy.setMode(.pass)
        proxy.cutAll()
        #expect(await standing.line() == nil)
        #expect(await target.ended.next() != nil)

        let other = try await ClientSocket.connect(port: proxy.port)
        #expect(await other.line() == "a")
        proxy.setMode(.swallow)
        try await other.send("lost\n")
        // The new connection is accepted, though nothing answers; both end with the mode, and the sent bytes never arrive.
        let taken = try await ClientSocket.connect(port: proxy.port)
        try await taken.send("lost too\n")
        try await eventually("both connections") { proxy.connectionCount == 2 }
        proxy.setMode(.pass)
        #expect(await other.line() == nil)
        #expect(await taken.line() == nil)
        #expect(try await names(of: 1, through: proxy) == ["a"])
        await proxy.stop()
        await target.stop()
    }

    @Test("a receiver that doesn't read holds back the sender, and eventually gets every byte")
    func holdsBack() async throws {
        let target = try await Target.start(name: "a")
        let proxy = try await TCPProxy.start(targets: [target.port])
        let client = try await ClientSocket.connect(port: proxy.port)
        #expect(await client.line() == "a")
        try await client.setReading(false)
        // The target echoes only while it can write: the whole path stalls, and sending doesn't finish.
        let sent = (0..<20_000).map { "\($0) \(String(repeating: "x", count: 1_000))\n" }.joined()
        let sending = Task { try await client.send(sent) }
        try await client.setReading(true)
        var received = ""
        received.reserveCapacity(sent.utf8.count)
        while received.utf8.count < sent.utf8.count, let piece = await client.receive() { received += piece }
        try await sending.value
        #expect(received.utf8.count == sent.utf8.count)
        #expect(received == sent)
        await proxy.stop()
        await target.stop()
    }

    /// The names with which the targets of this many connections greet; nil for a connection that ends at once.
    private func names(of count: Int, through proxy: TCPProxy) async throws -> [String?] {
        var names: [String?] = []
        for _ in 0..<count {
            let client = try await ClientSocket.connect(port: proxy.port)
            names.append(await client.line())
            await client.close()
        }
        return names
    }
}
