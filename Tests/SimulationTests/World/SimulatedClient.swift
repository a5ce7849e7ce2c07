import Logging
import RoostAPI
import RoostTestSupport

@testable import Roost
@testable import RoostClientModel

/// One device: the real machine, with a store and an outbox that outlive it, and timers on the scheduler's clock.
///
/// It does what `SyncDriver` does: outputs are performed in order, and rows that follow one another are one transaction.
final class SimulatedClient {
    let name: String
    let user: UserID
    private let scheduler: Scheduler
    private let settings: Sync.Settings
    /// Nil while the app isn't running.
    private(set) var machine: Sync?
    private(set) var store: MemoryStore
    private(set) var outbox = MemoryOutbox()
    private(set) var connection: Connection?
    private var timers: [Sync.Timer: Int] = [:]
    private var lastTimer = 0
    /// Counts the runs of the app, so nothing of an earlier one reaches a later one.
    private var runNumber = 0
    private var lastToken: CallToken = 0
    private var calls: Set<CallToken> = []
    /// Unanswered delivery reports, each with the number of the user's membership.
    private var reports: [CallToken: (mark: MarkDelivered, membership: Int)] = [:]
    /// What was written to the outbox and not yet handed to the machine.
    private var kept: [Sync.Input] = []
    /// Durable writes until the app is killed: between the store's and the outbox's, for example. Nil for never.
    var writesUntilCrash: Int?

    /// Makes a connection. The client gets its outcome.
    var open: () -> Connection? = { nil }
    /// Called after each transaction of the store.
    var stored: (SimulatedClient, [StoreWrite]) -> Void = { _, _ in }
    /// Called after each change of the store or the outbox, with the channels whose lists may have changed.
    var showed: (SimulatedClient, Set<ChannelID>) -> Void = { _, _ in }
    /// Called for every error that the machine logs.
    var logged: (SimulatedClient, String) -> Void = { _, _ in }
    /// Called for every message that a reply calls stored.
    var acknowledged: (SimulatedClient, Message) -> Void = { _, _ in }
    /// Called for every delivery report that was accepted.
    var reported: (SimulatedClient, MarkDelivered, _ membership: Int) -> Void = { _, _, _ in }

    init(name: String, user: UserID, scheduler: Scheduler, settings: Sync.Settings) {
        self.name = name
        self.user = user
        self.scheduler = scheduler
        self.settings = settings
        store = MemoryStore(user: user)
    }

    var isRunning: Bool { machine != nil }
    var device: DeviceID { DeviceID(name) }

    /// Whether nothing is left to do or to wait for.
    var isSettled: Bool {
        guard let machine, machine.phase == .online, machine.calls.isEmpty, connection?.isFlowing == true else { return false }
        return outbox.items.allSatisfy(\.isRefused)
    }

    // MARK: The app

    func launch() {
        guard machine == nil else { return }
        scheduler.note("\(name) starts")
        runNumber += 1
        // Opening the cache drops channels that were followed only while watched.
        let ended = store.saved.channels.filter(\.value.isVisit).keys.sorted().map { StoreWrite.endVisit($0) }
        if !ended.isEmpty {
            store.apply(ended)
            stored(self, ended)
        }
        machine = Sync(
            user: user, client: "simulated", device: DeviceDescription(deviceId: device), settings: settings, saved: store.saved,
            outbox: outbox.saved,
            random: Jitter(state: scheduler.random.next()))
        // The app may have been killed between the two files.
        if let machine, machine.overlays != store.overlays { store.apply(machine.overlayWrites) }
        handle(.start)
    }

    /// The app is killed: what is in memory is gone, what is stored stays.
    func crash() {
        guard machine != nil else { return }
        scheduler.note("\(name) crashes")
        machine = nil
        runNumber += 1
        timers = [:]
        calls = []
        reports = [:]
        kept = []
        writesUntilCrash = nil
        connection?.client = nil
        connection?.closeByClient()
        connection = nil
    }

    func send(_ text: String, clientId: ClientID, in channel: ChannelID) {
        scheduler.note("\(name) sends \(clientId) to \(channel)")
        enqueue(.send(SendMessage(channel: channel, clientId: clientId, text: text)))
    }

    /// Requests an operation that is kept until it is carried out.
    func enqueue(_ operation: OutboxOperation) {
        lastToken += 1
        let id = Int64(bitPattern: scheduler.random.next() >> 1)
        handle(.enqueue(lastToken, operation, id: id, at: Timestamp(milliseconds: scheduler.now)))
    }

    func startReading(_ channel: ChannelID) {
        lastToken += 1
        calls.insert(lastToken)
        handle(.startReading(lastToken, channel))
    }

    func stopReading(_ channel: ChannelID) {
        lastToken += 1
        calls.insert(lastToken)
        let id = Int64(bitPattern: scheduler.random.next() >> 1)
        handle(.stopReading(lastToken, channel, id: id, at: Timestamp(milliseconds: scheduler.now)))
    }

    func stopReadingEverything() {
        for channel in (machine?.reading ?? [:]).keys.sorted() { stopReading(channel) }
    }

    func call(_ operation: any RoostAPI.Operation) {
        lastToken += 1
        calls.insert(lastToken)
        handle(.call(lastToken, operation))
    }

    /// Reports a delivery, as a member of a channel for the nth time.
    func report(_ mark: MarkDelivered, membership: Int) {
        reports[lastToken + 1] = (mark, membership)
        call(mark)
    }

    /// Loads a page, mostly of older messages; otherwise one anywhere, even where there is nothing, or one next to such a page.
    func loadMessages(in channel: ChannelID) {
        lastToken += 1
        let place = Seq(scheduler.random.number(0...Int(store.saved.channels[channel]?.cursor ?? 5) + 2))
        let load: MessageLoad =
            switch scheduler.random.number(1...8) {
            case 1...3: .older(than: .max)
            case 4: .older(than: place)
            case 5: .newer(than: place)
            case 6: .aroundMessage(store.messages[channel]?.values.map(\.messageId).min() ?? MessageID(rawValue: 1))
            default: .around(place)
            }
        handle(.loadMessages(lastToken, channel, load, limit: scheduler.random.number(1...15)))
    }

    func cancelCall() { if let token = calls.min() { handle(.cancel(token)) } }

    func retry(_ item: OutboxItem) { handle(.retry(.operation(item.id, of: item.channel))) }
    func discard(_ item: OutboxItem) { handle(.discard(.operation(item.id, of: item.channel))) }
    func disconnect() { handle(.stop) }
    func connect() { handle(.start) }
    func nudge() { handle(.nudge) }

    // MARK: The machine

    private func handle(_ input: Sync.Input) {
        guard let outputs = machine?.handle(input) else { return }
        perform(outputs)
        let run = runNumber
        while run == runNumber, !kept.isEmpty { handle(kept.removeFirst()) }
    }

    private func perform(_ outputs: [Sync.Output]) {
        let run = runNumber
        var writes: [StoreWrite] = []
        for output in Self.inRepeatableOrder(outputs) {
            if case .store(let more) = output {
                writes += more
                continue
            }
            guard store(writes), run == runNumber else { return }
            writes = []
            perform(output)
            guard run == runNumber else { return }
        }
        _ = store(writes)
    }

    /// Returns whether the app still runs afterwards.
    private func store(_ writes: [StoreWrite]) -> Bool {
        guard !writes.isEmpty else { return true }
        store.apply(writes)
        scheduler.note("\(name) stores \(writes.map(\.summary).joined(separator: " "))")
        stored(self, writes)
        showed(self, Set(writes.compactMap(\.channel)))
        return countWrite()
    }

    private func perform(_ output: Sync.Output) {
        switch output {
        case .fetchToken: fetchToken()
        case .open(let number): open(number)
        case .send(let bytes), .sendBeforeStoring(let bytes): connection?.sendToServer(.message(bytes))
        case .ping: connection?.sendToServer(.ping)
        case .close:
            connection?.closeByClient()
            connection = nil
        case .outbox(let write):
            outbox.apply(write)
            scheduler.note("\(name) changes its outbox: \(write.summary)")
            if let channel = write.channel { showed(self, [channel]) }
            _ = countWrite()
        case .awaitKept(let token, let id, let channel): kept.append(.kept(token, id, of: channel))
        case .awaitNoted(let id, let channel):
            kept.append(.noted(id, of: channel, as: outbox.items.first { $0.id == id }))
        case .reply(let token, let result):
            calls.remove(token)
            if let report = reports.removeValue(forKey: token), case .success = result {
                reported(self, report.mark, report.membership)
            }
            guard case .success(let bytes) = result, let message = try? ReplyResult<Message>.decode(bytes) else { return }
            acknowledged(self, message)
        case .settled(_, .success(let message)): acknowledged(self, message)
        case .startTimer(let timer, let delay): start(timer, delay)
        case .cancelTimer(let timer): timers[timer] = nil
        case .event, .signal, .watching, .unwatched, .arrived: break
        case .status(let status): scheduler.note("\(name) is \(status.summary)")
        case .log(let level, let line): if level >= .error { logged(self, line) }
        case .cancelToken, .store, .settled, .repeated: break
        }
    }

    /// Counts a durable write. Returns whether the app still runs after it.
    private func countWrite() -> Bool {
        guard let left = writesUntilCrash else { return true }
        writesUntilCrash = left - 1
        guard left <= 1 else { return true }
        crash()
        return false
    }

    /// Some outputs follow the order of a dictionary, which no seed repeats. Those of them that matter here are put in order.
    private static func inRepeatableOrder(_ outputs: [Sync.Output]) -> [Sync.Output] {
        var ordered: [Sync.Output] = []
        var removals: [(id: Int64, channel: ChannelID?)] = []
        for output in outputs {
            if case .outbox(.done(let id, let channel)) = output {
                removals.append((id, channel))
                continue
            }
            if case .settled = output {} else { flush() }
            ordered.append(output)
        }
        flush()
        func flush() {
            removals.sort { $0.id < $1.id }
            ordered += removals.map { .outbox(.done($0.id, of: $0.channel)) }
            removals = []
        }
        return ordered
    }

    // MARK: Its environment

    private func fetchToken() {
        let hangs = scheduler.random.once(in: 40)
        guard !hangs else { return }
        let fails = scheduler.random.once(in: 20)
        let run = runNumber
        scheduler.after(scheduler.random.number(0...300)) { [weak self] in
            guard let self, run == runNumber else { return }
            handle(fails ? .tokenFailed("the provider is out") : .token(user.rawValue))
        }
    }

    private func open(_ number: Int64) {
        let run = runNumber
        let deliver: (TransportEvent) -> Void = { [weak self] event in
            guard let self, run == runNumber else { return }
            handle(.transport(number, event))
        }
        connection = open()
        guard let connection else {
            // Refused at once, or never answered.
            if scheduler.random.once(in: 4) { return }
            return scheduler.after(scheduler.random.number(1...100)) { deliver(.closed(code: nil, reason: "refused")) }
        }
        connection.client = deliver
    }

    private func start(_ timer: Sync.Timer, _ delay: Duration) {
        lastTimer += 1
        let (number, run) = (lastTimer, runNumber)
        timers[timer] = number
        let milliseconds = delay.components.seconds * 1000 + delay.components.attoseconds / 1_000_000_000_000_000
        scheduler.idle(Int(milliseconds)) { [weak self] in
            guard let self, run == runNumber, timers[timer] == number else { return }
            timers[timer] = nil
            handle(.timer(timer))
        }
    }

    /// Where the jitter of reconnecting comes from (xorshift).
    private struct Jitter: RandomNumberGenerator, Sendable {
        var state: UInt64
        mutating func next() -> UInt64 {
            if state == 0 { state = 1 }
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
    }
}
