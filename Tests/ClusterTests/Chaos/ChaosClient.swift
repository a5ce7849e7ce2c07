#if Cluster
import Foundation
import RoostAPI
import RoostTestSupport

/// A client of the kill test: it connects to any node, follows the protocol strictly, does random things, and repeats sends that weren't
/// acknowledged before its connection broke.
actor ChaosClient {
    /// An unacknowledged message: it stays until it is acknowledged or refused for good.
    struct Outgoing {
        let clientId: ClientID
        let channel: ChannelID
        /// The channel as this call names it: by its id, or with its type.
        var name: ChannelID
        var attempts = 0
        var isInFlight = false
    }

    enum Call {
        case resume
        case send(ClientID)
        case turn(ChannelID)
        case change
    }

    nonisolated let user: UserID
    private let nodes: NodeProcesses
    private let token: String
    var random: SeededGenerator
    /// The channels that this client joins and leaves.
    let wanders: [ChannelID]
    private(set) var view: StrictView
    private(set) var acked: [ClientID: (channel: ChannelID, seq: Seq)] = [:]
    private(set) var connectCount = 0
    /// Refusals that are legal elsewhere in the protocol, but here only due to a fault: codes and how often.
    private(set) var refusals: [String: Int] = [:]

    var socket: RawSocket?
    var isLive = false
    private var held: [Event] = []
    var pending: [Outgoing] = []
    var inFlight: [Int64: Call] = [:]
    /// The calls of each channel whose replies are awaited, in order.
    private var order: [ChannelID: [Int64]] = [:]
    private var lastCall: Int64 = 0
    var turning: Set<ChannelID> = []
    /// Channels in which a connection ended before the answer to joining or leaving: it may still be done.
    private var brokenTurns: [ChannelID: ContinuousClock.Instant] = [:]
    var mine: [Message] = []
    var lastNumber = 0
    var isActing = true
    private var isEnded = false
    private let decoder = JSONDecoder()

    static let inFlightMax = 8
    /// Longer than a node holds an operation of a disconnected client.
    private static let turnMax = Duration.seconds(30)
    /// Longer than the interval between two pings: a connection that is silent for this long is dead.
    private static let silenceMax = Duration.seconds(55)

    init(user: UserID, nodes: NodeProcesses, wanders: [ChannelID], seed: UInt64) async throws {
        self.user = user
        self.nodes = nodes
        self.wanders = wanders
        token = try await nodes.token(user)
        random = SeededGenerator(seed: seed)
        view = StrictView(user: user)
    }

    // MARK: From outside

    /// Runs until ``end()``.
    func run() async {
        while !isEnded {
            do {
                try await connect()
            } catch {
                // The node was killed before or while it answered.
            }
            socket = nil
            // The wait of a client before it reconnects is random as well.
            try? await Task.sleep(for: .milliseconds(random.number(10...150)))
        }
    }

    /// Starts nothing new, and continues operations in progress.
    func rest() { isActing = false }

    func end() async {
        isEnded = true
        await socket?.close()
    }

    /// Whether this client has nothing pending.
    var isResting: Bool { !isActing && isLive && pending.isEmpty && inFlight.isEmpty }

    // MARK: One connection

    private func connect() async throws {
        guard let port = nodes.livePort(by: &random) else { return }
        let started = ContinuousClock.now
        let socket: RawSocket
        do {
            socket = try await RawSocket.connect(port: port, token: token)
        } catch {
            if ContinuousClock.now - started > .seconds(15) { view.fault(.silence, "no welcome: \(error)") }
            throw error
        }
        connectCount += 1
        self.socket = socket
        isLive = false
        held = []
        inFlight = [:]
        order = [:]
        for channel in turning { brokenTurns[channel] = .now }
        turning = []
        for index in pending.indices { pending[index].isInFlight = false }
        view.beginConnection()
        post(Resume(after: view.position, channels: view.positions), as: .resume)
        await withTaskGroup { group in
            group.addTask { await self.act(on: socket) }
            await follow(socket)
            group.cancelAll()
        }
        isLive = false
        await socket.close()
    }

    private func follow(_ socket: RawSocket) async {
        let started = ContinuousClock.now
        while !isEnded {
            let asked = ContinuousClock.now
            switch await socket.next(within: Self.silenceMax) {
            case .text(let text):
                do {
                    try await receive(text)
                } catch {
                    view.fault(.refusal, "can't be read: \(error) \(text.prefix(300))")
                    return
                }
            case .ping: try? await socket.connection.send(RawSocket.frame(opcode: 10, []))
            case .close, .end:
                if ContinuousClock.now - asked >= Self.silenceMax { view.fault(.silence, "after \(asked - started)") }
                return
            }
        }
    }

    private func receive(_ text: String) async throws {
        let data = Data(text.utf8)
        if text.hasPrefix(#"{"watching""#) {
            let event = try decoder.decode(EventFrame.self, from: data).event
            view.note(event)
            if isLive { view.apply(event) } else { held.append(event) }
        } else if text.hasPrefix(#"{"reply""#) {
            let reply = try decoder.decode(Bare.self, from: data)
            guard let call = inFlight.removeValue(forKey: reply.reply) else {
                return view.fault(.refusal, "a reply without a call: \(reply.reply)")
            }
            checkOrder(of: reply.reply, reply.error)
            try await receive(reply.error, data, to: call)
        } else if !text.hasPrefix(#"{"closing""#) {
            view.fault(.refusal, "\(text.prefix(300))")
        }
    }

    /// The replies of one channel arrive in the order of its calls. A temporary refusal may need no database, and then has no place among
    /// them: a stopping server refuses immediately.
    private func checkOrder(of call: Int64, _ error: RoostError?) {
        guard let (channel, calls) = order.first(where: { $0.value.contains(call) }) else { return }
        if calls.first != call, error?.retryAfterMilliseconds == nil {
            view.fault(.reply, "\(channel): \(call) answered before \(calls)")
        }
        order[channel]?.removeAll { $0 == call }
    }

    private struct Bare: Decodable {
        let reply: Int64
        let error: RoostError?
    }
    private struct Full<Result: Decodable>: Decodable { let result: Result }

    private func receive(_ error: RoostError?, _ data: Data, to call: Call) async throws {
        if let error { refusals[error.code.rawValue, default: 0] += 1 }
        switch call {
        case .resume:
            if let error {
                // While the database is down no client can resume: this one retries.
                if error.retryAfterMilliseconds == nil { view.fault(.refusal, "resume: \(error)") }
                await socket?.close()
                return
            }
            let answer = try decoder.decode(Full<Resumption>.self, from: data).result
            view.apply(answer)
            if answer.hasMore { return post(Resume(after: view.position, channels: view.positions), as: .resume) }
            for event in held { view.apply(event) }
            held = []
            isLive = true
            sendPending()
        case .send(let id):
            guard let index = pending.firstIndex(where: { $0.clientId == id }) else { return }
            if let error {
                pending[index].isInFlight = false
                if error.retryAfterMilliseconds == nil, error.code != .internalError { pending.remove(at: index) }
                return
            }
            let message = try decoder.decode(Full<Message>.self, from: data).result
            let sent = pending.remove(at: index)
            acked[id] = (message.channelId, message.seq)
            mine = mine.suffix(20) + [message]
            if sent.attempts == 1, !mayHaveLeft(sent.channel), let held = view.channels[sent.channel], held.position < message.seq {
                view.fault(.reply, "\(sent.channel): \(message.seq) answered at \(held.position)")
            }
        case .turn(let channel): turning.remove(channel)
        case .change: break
        }
    }

    /// Whether a call to leave is in progress: once it is done, earlier events may be merged with the leaving, which only the user's
    /// own stream reports.
    private func mayHaveLeft(_ channel: ChannelID) -> Bool {
        turning.contains(channel) || brokenTurns[channel].map { ContinuousClock.now - $0 < Self.turnMax } == true
    }

    // MARK: Out

    /// A call whose connection breaks gets no reply: it is made again on the next one.
    ///
    /// Doesn't wait: two tasks call this, and waiting could send their calls in another order than they are recorded in.
    func post(_ operation: some RoostAPI.Operation, as call: Call, in channel: ChannelID? = nil) {
        guard let socket, let frame = try? JSONWriter.bytes(of: CallFrame(call: lastCall + 1, with: operation)) else { return }
        lastCall += 1
        inFlight[lastCall] = call
        if let channel { order[channel, default: []].append(lastCall) }
        socket.connection.post(RawSocket.frame(opcode: 1, frame))
    }
}
#endif
