#if Cluster
import Logging
import RoostAPI
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// The bus against a real NATS server: the promises of ``Bus``, and that no more is needed.
@Suite struct NATSBusTests {
    @Test("I3 every kind of topic, and every kind of id, arrives at the other node with its bytes, and never at the sender")
    func deliversAllTopics() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        let ids = [
            "general", "a b", "a.b", "*", ">", "a.*.>", "-_", "$SYS", "ä", "日本語", "👩‍👩‍👧‍👦", "\"\\", "a", "ab", "abc",
            String(repeating: "x", count: 128), String(repeating: "👩‍👩‍👧", count: 28),
        ]
        var topics = [BusTopic.nodes, .node(NodeID("n1")), .node(NodeID("n 2.*"))]
        topics += ids.flatMap { [.stream(.channel(ChannelID($0))), .stream(.user(UserID($0)))] }
        for topic in topics {
            // Both subscribe, so an echo would be seen.
            ann.bus.subscribe(to: topic)
            bob.bus.subscribe(to: topic)
        }
        try await ann.settle()
        try await bob.settle()

        var expected: [Received] = []
        for (index, topic) in topics.enumerated() {
            let payload = [UInt8(index), 0, 255, 10, 13]
            ann.bus.publish(payload, to: topic)
            expected.append(Received(topic: topic, payload: payload))
        }
        var received: [Received] = []
        for _ in topics { received.append(try await bob.message()) }
        #expect(received == expected)
        // An echo of ann's own would have arrived before bob's message.
        bob.bus.publish([1], to: .nodes)
        #expect(try await ann.message() == Received(topic: .nodes, payload: [1]))
        await stop(server, ann, bob)
    }

    @Test("I3 subscribed twice is delivered once; unsubscribed, nothing; subscribed again, once again")
    func subscribesOnce() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        let (general, random) = (channel("general"), channel("random"))
        bob.bus.subscribe(to: general)
        bob.bus.subscribe(to: general)
        bob.bus.subscribe(to: random)
        try await bob.settle()
        #expect(try await server.subscriptionCount() == 2)
        ann.bus.publish([1], to: general)
        ann.bus.publish([2], to: random)
        bob.bus.unsubscribe(from: channel("never subscribed"))
        #expect(try await bob.messages(2) == [Received(topic: general, payload: [1]), Received(topic: random, payload: [2])])

        bob.bus.unsubscribe(from: general)
        bob.bus.unsubscribe(from: general)
        try await bob.settle()
        #expect(try await server.subscriptionCount() == 1)
        ann.bus.publish([3], to: general)
        ann.bus.publish([4], to: random)
        #expect(try await bob.message() == Received(topic: random, payload: [4]))

        bob.bus.subscribe(to: general)
        bob.bus.unsubscribe(from: general)
        bob.bus.subscribe(to: general)
        try await bob.settle()
        ann.bus.publish([5], to: general)
        ann.bus.publish([6], to: random)
        #expect(try await bob.messages(2) == [Received(topic: general, payload: [5]), Received(topic: random, payload: [6])])
        await stop(server, ann, bob)
    }

    @Test("I3 messages published after settling always arrive: 500 new topics, one after the other")
    func settles() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        for number in 0..<500 {
            let topic = channel("c\(number)")
            bob.bus.subscribe(to: topic)
            try bob.bus.settle()
            ann.bus.publish([1], to: topic)
            #expect(try await bob.message() == Received(topic: topic, payload: [1]))
        }
        await stop(server, ann, bob)
    }

    @Test("I3 on a calm bus the messages of a topic keep their order, from several threads to many topics")
    func keepsOrder() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        let topics = (0..<8).map { channel("c\($0)") }
        for topic in topics { bob.bus.subscribe(to: topic) }
        try await bob.settle()
        await withTaskGroup(of: Void.self) { group in
            for topic in topics {
                group.addTask { for number in 0..<250 { ann.bus.publish([UInt8(number)], to: topic) } }
            }
        }
        var received: [BusTopic: [UInt8]] = [:]
        for message in try await bob.messages(8 * 250) { received[message.topic, default: []] += message.payload }
        #expect(received == Dictionary(uniqueKeysWithValues: topics.map { ($0, Array(0..<250)) }))
        await stop(server, ann, bob)
    }

    @Test("I3 I18 when the server is killed and restarted, both nodes are notified, and all subscriptions remain")
    func survivesRestart() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        bob.bus.subscribe(to: channel("before"))
        bob.bus.subscribe(to: channel("left"))
        try await bob.settle()
        for _ in 0..<3 {
            await server.killNow()
            for peer in [ann, bob] { #expect(try await peer.change() == .disconnected) }
            #expect(!ann.bus.isConnected)
            #expect(throws: BusFailure.self) { try bob.bus.settle() }
            bob.bus.subscribe(to: channel("during"))
            bob.bus.unsubscribe(from: channel("left"))
            // Lost, and never delivered later.
            ann.bus.publish([0], to: channel("before"))

            try await server.startAgain()
            for peer in [ann, bob] { #expect(try await peer.change() == .reconnected) }
            #expect(ann.bus.isConnected)
            try await bob.settle()
            #expect(try await server.subscriptionCount() == 2)
            ann.bus.publish([1], to: channel("left"))
            ann.bus.publish([2], to: channel("before"))
            ann.bus.publish([3], to: channel("during"))
            #expect(
                try await bob.messages(2) == [
                    Received(topic: channel("before"), payload: [2]), Received(topic: channel("during"), payload: [3]),
                ])
        }
        await stop(server, ann, bob)
    }

    @Test("I18 a stalled server is noticed, and used again when it continues; publishing never waits")
    func noticesStandstill() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        bob.bus.subscribe(to: channel("general"))
        try await bob.settle()
        server.freeze()
        // More than sockets buffer, so the bus's thread blocks in the middle of a write.
        let payload = [UInt8](repeating: 0, count: 100_000)
        for _ in 0..<1_000 { ann.bus.publish(payload, to: channel("general")) }
        for peer in [ann, bob] { #expect(try await peer.change() == .disconnected) }
        server.thaw()
        for peer in [ann, bob] { #expect(try await peer.change() == .reconnected) }
        try await bob.settle()
        ann.bus.publish([9], to: channel("general"))
        while try await bob.message().payload != [9] {}
        await stop(server, ann, bob)
    }

    @Test("I18 a node starts before its server, and is notified when the server starts")
    func startsFirst() async throws {
        let server = try await NATSServer.reserve()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        bob.bus.subscribe(to: .nodes)
        #expect(!bob.bus.isConnected)
        ann.bus.publish([1], to: .nodes)
        #expect(throws: BusFailure.self) { try bob.bus.settle() }
        try await server.startAgain()
        for peer in [ann, bob] { #expect(try await peer.change() == .reconnected) }
        try await bob.settle()
        ann.bus.publish([2], to: .nodes)
        #expect(try await bob.message() == Received(topic: .nodes, payload: [2]))
        await stop(server, ann, bob)
    }

    @Test("I18 a node starts even if its server's port closes each connection at once, and is notified when the server starts")
    func startsBehindClosingPort() async throws {
        let server = try await NATSServer.start()
        let proxy = try await TCPProxy.start(targets: [server.port])
        proxy.setMode(.refuse)
        let bob = try Peer("nats://127.0.0.1:\(proxy.port)")
        #expect(!bob.bus.isConnected)
        bob.bus.subscribe(to: .nodes)
        proxy.setMode(.pass)
        #expect(try await bob.change() == .reconnected)
        try await bob.settle()
        let ann = try Peer(server.url)
        ann.bus.publish([1], to: .nodes)
        #expect(try await bob.message() == Received(topic: .nodes, payload: [1]))
        await stop(server, ann, bob)
        await proxy.stop()
    }

    @Test("I18 a server that refuses this node for a while doesn't lose it for good")
    func comesBackAfterRefusal() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        bob.bus.subscribe(to: channel("general"))
        try await bob.settle()
        // On the same port, with a password that the nodes don't have.
        await server.killNow()
        #expect(try await bob.change() == .disconnected)
        try await server.startAgain(arguments: ["--user", "ann", "--pass", "other"])
        // The library gives up at its second refusal; the bus keeps retrying, and logs why it fails.
        try await bob.log.line(containing: "NATS at 127.0.0.1:\(server.port): Authentication Violation")
        await server.killNow()
        try await server.startAgain()
        #expect(try await bob.change() == .reconnected)
        #expect(try await ann.change() == .disconnected)
        #expect(try await ann.change() == .reconnected)
        try await bob.settle()
        ann.bus.publish([1], to: channel("general"))
        #expect(try await bob.message() == Received(topic: channel("general"), payload: [1]))
        await stop(server, ann, bob)
    }

    @Test("I3 I18 a refused node is notified that it has the bus again once all its subscriptions are made")
    func subscribesBeforeItTells() async throws {
        let server = try await NATSServer.start()
        let refusing = try await NATSServer.start(arguments: ["--user", "ann", "--pass", "other"])
        let proxy = try await TCPProxy.start(targets: [server.port])
        let topics = (0..<1_000).map { channel("c\($0)") }
        let (url, log, received) = (server.url, LogLines(), Mailbox<BusTopic>())
        let bob = try NATSBus(url: "nats://127.0.0.1:\(proxy.port)", logger: Logger(label: "bob") { _ in log.handler })
        try bob.start { event in
            switch event {
            case .received(let topic, _): received.put(topic)
            case .disconnected: break
            case .reconnected:
                // This is bob's own thread, which does nothing else meanwhile.
                guard let ann = try? Peer(url) else { return }
                for topic in topics { ann.bus.publish([1], to: topic) }
                ann.bus.stop()
            }
        }
        for topic in topics { bob.subscribe(to: topic) }
        try await eventually("1,000 subscriptions") { (try? bob.settle()) != nil }
        proxy.setTargets([refusing.port])
        proxy.cutAll()
        // From here on the library has given up.
        try await log.line(containing: "NATS at 127.0.0.1:\(proxy.port): Authentication Violation")
        proxy.setTargets([server.port])
        var arrived: Set<BusTopic> = []
        for _ in topics {
            guard let topic = await received.next() else { throw Missed("what was published when the bus was back") }
            arrived.insert(topic)
        }
        #expect(arrived == Set(topics))
        bob.stop()
        await proxy.stop()
        await refusing.stop()
        await server.stop()
    }

    @Test("I3 I18 a node whose connection broke is notified that it has the bus again once all its 20,000 subscriptions are made")
    func subscribesBeforeItTellsOfABreak() async throws {
        let server = try await NATSServer.start()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let topics = (0..<20_000).map { channel("c\($0)") }
        let ann = try Peer(server.url)
        let arrived = Mutex<Set<BusTopic>>([])
        let bob = try NATSBus(url: "nats://127.0.0.1:\(proxy.port)", logger: Logger(label: "bob") { _ in SwiftLogNoOpLogHandler() })
        try bob.start { event in
            switch event {
            case .received(let topic, _): arrived.withLock { _ = $0.insert(topic) }
            case .disconnected: break
            // At this very moment, over an existing connection.
            case .reconnected: for topic in topics { ann.bus.publish([1], to: topic) }
            }
        }
        for topic in topics { bob.subscribe(to: topic) }
        try await eventually("20,000 subscriptions") { (try? bob.settle()) != nil }
        proxy.cutAll()
        try await eventually("what was published when the bus was back") { arrived.withLock { $0.count } == topics.count }
        bob.stop()
        await proxy.stop()
        await stop(server, ann)
    }

    @Test("I18 a node holds 20,000 subscriptions, through a restart of the server too, without a thread for each")
    func holdsManySubscriptions() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        for number in 0..<20_000 { bob.bus.subscribe(to: channel("c\(number)")) }
        try await bob.settle()
        #expect(try await server.subscriptionCount() == 20_000)
        await server.killNow()
        try await server.startAgain()
        for peer in [ann, bob] {
            #expect(try await peer.change() == .disconnected)
            #expect(try await peer.change() == .reconnected)
        }
        try await bob.settle()
        #expect(try await server.subscriptionCount() == 20_000)
        for number in stride(from: 0, to: 20_000, by: 100) {
            ann.bus.publish([UInt8(number / 100)], to: channel("c\(number)"))
        }
        #expect(try await bob.messages(200).map(\.payload) == (0..<200).map { [UInt8($0)] })
        await stop(server, ann, bob)
    }

    @Test("I18 a message too large for the server is dropped and logged, and the connection stays")
    func dropsOversize() async throws {
        let server = try await NATSServer.start()
        let (ann, bob) = (try Peer(server.url), try Peer(server.url))
        bob.bus.subscribe(to: .nodes)
        try await bob.settle()
        let most = [UInt8](repeating: 7, count: 1_048_576)
        ann.bus.publish(most + [7], to: .nodes)
        ann.bus.publish(most, to: .nodes)
        ann.bus.publish([], to: .nodes)
        #expect(try await bob.messages(2).map(\.payload.count) == [1_048_576, 0])
        try await ann.log.line(containing: "1048577 bytes is dropped: the server accepts at most 1048576")
        #expect(ann.bus.isConnected)
        await stop(server, ann, bob)
    }

    @Test("I13 messages published before a bus is stopped are still sent, above all the node's goodbye")
    func farewell() async throws {
        let server = try await NATSServer.start()
        let bob = try Peer(server.url)
        bob.bus.subscribe(to: .nodes)
        try await bob.settle()
        for number in 0..<20 {
            let ann = try Peer(server.url)
            for part in 0..<50 { ann.bus.publish([UInt8(number), UInt8(part)], to: .nodes) }
            ann.bus.stop()
            #expect(try await bob.messages(50).map(\.payload) == (0..<50).map { [UInt8(number), UInt8($0)] })
        }
        await stop(server, bob)
    }

    @Test("I18 a bus stopped in a storm of messages calls no handler afterwards; stopping twice is stopping once")
    func stopsInStorm() async throws {
        let server = try await NATSServer.start()
        let ann = try Peer(server.url)
        let storm = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while !storm.isSet {
                    for number in 0..<20 { ann.bus.publish([1, 2, 3], to: channel("c\(number)")) }
                    await Task.yield()
                }
            }
            defer { storm.set() }
            for _ in 0..<30 {
                let stopped = Flag()
                let calls = Mailbox<Void>()
                let calledTooLate = Flag()
                let bob = try NATSBus(url: server.url, logger: Logger(label: "bob") { _ in SwiftLogNoOpLogHandler() })
                for number in 0..<20 { bob.subscribe(to: channel("c\(number)")) }
                try bob.start { _ in
                    if stopped.isSet { calledTooLate.set() }
                    calls.put(())
                }
                #expect(await calls.next() != nil)
                bob.stop()
                stopped.set()
                bob.stop()
                bob.publish([1], to: .nodes)
                bob.subscribe(to: .nodes)
                #expect(throws: BusFailure.self) { try bob.settle() }
                #expect(throws: BusFailure.self) { try bob.start { _ in } }
                #expect(!calledTooLate.isSet)
            }
            storm.set()
            try await group.waitForAll()
        }
        try await eventually("the server to see them gone") { try await server.subscriptionCount() == 0 }
        await stop(server, ann)
    }
}
#endif
