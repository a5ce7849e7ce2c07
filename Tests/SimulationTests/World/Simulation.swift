import RoostAPI
import RoostCore
import RoostTestSupport

@testable import Roost
@testable import RoostClientModel

/// One run: a server, several devices of several users, a bad network and bad luck, all of it from one seed; and a checker that watches.
final class Simulation {
    /// What kind of run a seed gives.
    struct Profile {
        var actions = 150
        /// One frame in this many is dropped, and as many are duplicated; 0 for a network that only delays and cuts, as TCP does.
        var mischief = 0
        /// Whether the clock of the server's machine is set now and then, by up to a day.
        var setsClock = false
        /// Whether people mostly change their newest message, on all their devices.
        var editsMostly = false
        /// The most events that a client holds while catching up.
        var heldEventsMax = 10_000
        /// The most channels: few, so some have a long history.
        var channelsMax = 5

        /// Every fifth seed loses frames, every seventh has clients with little room.
        init(seed: UInt64) {
            if seed % 5 == 0 { mischief = 40 }
            if seed % 7 == 0 { heldEventsMax = 2 }
        }
    }

    /// The outcome of a run.
    struct Outcome {
        let seed: UInt64
        let hash: UInt64
        let steps: Int
        let verdicts: [Checker.Verdict]
        let end: String
        let stored: Int

        var failure: String {
            "ROOST_TEST_SEED=\(seed): \(verdicts.prefix(5).map(\.description).joined(separator: "\n"))\nThe history ended so:\n\(end)"
        }
    }

    let seed: UInt64
    var profile: Profile
    let scheduler: Scheduler
    let server: SimulatedServer
    private(set) var clients: [SimulatedClient] = []
    var checker = Checker()
    var channels: [ChannelID] = []
    var lastClientId = 0
    var lastEdit = 0
    var actionsLeft = 0
    var isHealed = false
    /// The kinds of events that the run has had.
    private(set) var eventKinds: Set<Event.Kind> = []
    /// Every transaction of the first client, for the test that compares the store's model with the store.
    private(set) var firstClientWrites: [[StoreWrite]] = []
    private var lastConnection: Int64 = 0

    init(seed: UInt64, profile: Profile? = nil) throws {
        self.seed = seed
        self.profile = profile ?? Profile(seed: seed)
        scheduler = Scheduler(seed: seed)
        server = try SimulatedServer(scheduler: scheduler)
        server.committed = { [unowned self] caller, notices in committed(notices, by: caller) }
        server.failed = { [unowned self] error in checker.fail("I21", "the server failed: \(error)") }
        server.delivered = { [unowned self] stream, seq, caller in
            checker.delivered(stream, seq, to: caller.user)
            if let device = caller.device { checker.delivered(stream, seq, to: device, of: caller.user) }
        }
        // Ann has two devices.
        for (name, user) in [("ann-1", "ann"), ("ann-2", "ann"), ("bob-1", "bob"), ("cid-1", "cid")] {
            clients.append(client(name, UserID(user)))
        }
    }

    private func committed(_ notices: [Notice], by caller: Caller) {
        for notice in notices {
            switch notice {
            case .event(let event, _):
                eventKinds.insert(event.kind)
                checker.committed(event)
                if let device = caller.device { checker.acted(device, of: caller.user, event.kind) }
            case .read(let position, let channel): checker.sentReceipt(position, in: channel)
            case .accessChanged(let changes):
                for case .signedOut(let user, let device, let last) in changes { checker.signedOut(device, of: user, upTo: last) }
            default: break
            }
        }
    }

    /// Runs to the end, or to the first verdict.
    func run() throws -> Outcome {
        defer { scheduler.clear() }
        actionsLeft = profile.actions
        for client in clients { scheduler.after(scheduler.random.number(0...500)) { client.launch() } }
        scheduler.after(1000) { [unowned self] in try act() }
        scheduler.after(3000) { [unowned self] in try fault() }
        try advance { $0.actionsLeft == 0 }
        heal()
        try rest()
        if checker.verdicts.isEmpty { try judgeTheEnd() }
        return Outcome(
            seed: seed, hash: scheduler.history.hash, steps: scheduler.stepCount, verdicts: checker.verdicts,
            end: scheduler.history.end,
            stored: checker.stored.count)
    }

    // MARK: Time

    private func advance(until isOver: (Simulation) -> Bool) throws {
        while checker.verdicts.isEmpty, !isOver(self), try scheduler.step() {}
    }

    /// Lets everything come to rest: nothing under way, every client online, nothing to send.
    private func rest() throws {
        let deadline = scheduler.now + 600_000
        try advance { run in
            if run.scheduler.now > deadline { return true }
            return run.scheduler.pendingWork == 0 && run.server.isQuiet && run.clients.allSatisfy(\.isSettled)
        }
        guard checker.verdicts.isEmpty, scheduler.now > deadline else { return }
        let restless = clients.filter { !$0.isSettled }.map { client in
            "\(client.name) \(client.machine.map { "\($0.phase), \($0.calls.count) calls" } ?? "down"), \(client.outbox.items.count) unsent"
        }
        checker.fail("I5", "no rest within ten minutes of a good network: \(restless)")
    }

    /// From here on nothing goes wrong.
    private func heal() {
        scheduler.note("all is well from here on")
        isHealed = true
        server.fate = nil
        try? server.start()
        for client in clients {
            client.writesUntilCrash = nil
            client.launch()
            client.connect()
            // A lost frame is noticed with the next one, and here no next one follows.
            if profile.mischief > 0 { client.connection?.cut() }
        }
    }

    // MARK: Clients

    private func client(_ name: String, _ user: UserID) -> SimulatedClient {
        var settings = Sync.Settings()
        settings.heldEventsMax = profile.heldEventsMax
        let client = SimulatedClient(name: name, user: user, scheduler: scheduler, settings: settings)
        client.open = { [unowned self] in open() }
        client.acknowledged = { [unowned self] client, message in
            checker.acknowledged(message)
            // A message that isn't cached isn't shown: sending it again shows it only until the reply.
            if client.store.saved.channels[message.channelId]?.holds(message.seq) == false {
                checker.shown[client.name]?[message.channelId]?.remove(message.name)
            }
        }
        client.reported = { [unowned self] client, mark, membership in
            checker.reported(mark, by: client.user, in: membership)
        }
        // The server is a real one: anything unreadable of it would be missing.
        client.logged = { [unowned self] client, line in checker.fail("I3", "\(client.name) reports: \(line)") }
        client.stored = { [unowned self] client, writes in stored(writes, by: client) }
        client.showed = { [unowned self] client, channels in
            for channel in channels.sorted() { showed(channel, on: client, isRenewed: client.store.saved.channels[channel] == nil) }
        }
        return client
    }

    private func open() -> Connection? {
        lastConnection += 1
        guard server.isUp else { return nil }
        let connection = Connection(number: lastConnection, scheduler: scheduler) { [unowned self] in
            Connection.Quality(clog: isHealed ? 1_000_000 : 40, mischief: isHealed ? 0 : profile.mischief)
        }
        scheduler.after(scheduler.random.number(0...60)) { [unowned self] in
            if server.isUp { server.accept(connection) } else { connection.cut() }
        }
        return connection
    }

    private func stored(_ writes: [StoreWrite], by client: SimulatedClient) {
        if client === clients.first { firstClientWrites.append(writes) }
        checker.stored(
            client.store, by: client.name, touching: Set(writes.compactMap(\.channel)), isExact: profile.mischief == 0)
        for write in writes {
            switch write {
            case .forget(let channel), .forgetMessages(let channel, _), .leave(let channel), .visit(let channel, _),
                .endVisit(let channel):
                showed(channel, on: client, isRenewed: true)
            case .erase: checker.shown[client.name] = nil
            default: break
            }
        }
    }

    private func showed(_ channel: ChannelID, on client: SimulatedClient, isRenewed: Bool) {
        let sent = (client.store.messages[channel] ?? [:]).values.map { MessageItem($0, sender: UserSummary(userId: $0.sender)) }
        let pending = client.outbox.items.filter { $0.channel == channel }
        let known = Set(sent.map(\.id))
        // A list doesn't show a cached message as pending.
        let own = UserSummary(userId: client.user)
        let items = sent + pending.compactMap { MessageItem($0, sender: own) }.filter { !known.contains($0.id) }
        let names = items.map { Checker.Name(sender: $0.id.sender, channel: channel, clientId: $0.clientId) }
        if Set(names).count != names.count { checker.fail("I6", "\(client.name) shows a message of \(channel) twice") }
        checker.showed(Set(names), of: channel, on: client.name, isRenewed: isRenewed)
    }

    // MARK: The end

    private func judgeTheEnd() throws {
        // What is read at this moment shows more than the server has said.
        for client in clients { client.stopReadingEverything() }
        try rest()
        checker.disk(try server.messages(), heads: try server.heads())
        checker.waiting(Set(clients.flatMap(\.unsent)))
        let observed = clients
        for user in Set(observed.map(\.user)).sorted() {
            let fresh = client("\(user)-fresh", user)
            clients.append(fresh)
            fresh.launch()
            try rest()
            for client in observed where client.user == user && checker.verdicts.isEmpty {
                checker.atRest(client.store, beside: fresh.store, client.name)
                guard checker.verdicts.isEmpty else { return }
                for channel in client.store.joined {
                    let members =
                        try server.ask(GetChannelChanges(channel: channel, after: 0, limit: 1000), as: user).rows.members ?? []
                    let unread = try server.ask(GetUnread(channel: channel), as: user).unreadCount
                    checker.atRest(client.store, in: channel, members: members, unread: unread, client.name)
                    let positions = try server.ask(ListReaders(channel: channel, limit: 100), as: user).items
                    checker.atRest(positions, in: channel, members: members, as: user)
                }
            }
        }
    }
}

extension SimulatedClient {
    /// The content of the outbox.
    var unsent: [Checker.Name] {
        outbox.items.compactMap(\.message).map { Checker.Name(sender: user, channel: $0.channel, clientId: $0.clientId) }
    }
}
