import Foundation
import NIOCore
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// A channel `room` with every kind of possible receiver, and what reaches each of their devices.
///
/// The devices receive what the hub's own `Subscriptions` give a server's connections.
///
/// - `ann` owns the channel; `oda` is an operator; `bob` and `cid` are members.
/// - `ida` is invited by ann and hasn't answered; `fay` was a member and left; `sam` never was one, and accepts no invitation by himself.
/// - `wes` is one of the app's admins: not a member, and watching on the first of his devices.
///
/// All but cid and fay have two devices. The acting device receives the same as the other one. If they differ, as in watching, a row names the device.
final class AudienceWorld {
    static let devices = [
        "ann/1", "ann/2", "oda/1", "oda/2", "bob/1", "bob/2", "cid/1", "ida/1", "ida/2", "fay/1", "sam/1", "sam/2", "wes/1",
        "wes/2",
    ]
    static let groups: [String: [String]] = [
        "members": ["ann/1", "ann/2", "oda/1", "oda/2", "bob/1", "bob/2", "cid/1"],
        "ann": ["ann/1", "ann/2"], "oda": ["oda/1", "oda/2"], "bob": ["bob/1", "bob/2"], "cid": ["cid/1"],
        "ida": ["ida/1", "ida/2"], "fay": ["fay/1"], "sam": ["sam/1", "sam/2"], "wes": ["wes/1", "wes/2"],
    ]

    let core: CoreWorld
    /// A message of bob's.
    let message: MessageID
    /// What reached each device, in order.
    private(set) var received: [String: [String]] = [:]
    /// A frame of each kind of event and signal, as it was sent: of several the alphabetically first.
    private(set) var frames: [String: String] = [:]

    private var subscriptions = Subscriptions<String>()
    private var watchers: [UserID] = []
    /// The signals not yet sent.
    private var board = SignalBoard()

    init(type: ChannelType) throws {
        core = try CoreWorld()
        (core.options.undeletionSeconds, core.options.versionSeconds) = (60, 60)
        for user in ["ann", "oda", "bob", "cid", "ida", "fay", "sam", "wes"] as [UserID] { try core.user(user) }
        for user in ["ida", "sam"] as [UserID] { try core.perform(UpdatePreferences(autoAcceptInvitations: false), as: user) }
        try core.perform(CreateChannel(channel: "room", type: type, users: ["oda", "bob", "cid", "fay"]), as: "ann")
        try core.perform(SetMemberRole(channel: "room", users: ["oda"], role: .operator), as: "ann")
        try core.perform(LeaveChannel(channel: "room"), as: "fay")
        try core.perform(InviteMembers(channel: "room", users: ["ida"]), as: "ann")
        message = try core.send("hi", to: "room", as: "bob").messageId
        try core.deadEffect("test.dead", key: "1")
        for number in Self.devices.indices { try connect(number) }
        try perform(WatchChannel(channel: "room"), on: "wes/1", role: .admin)
        received = [:]
    }

    private func connect(_ number: Int) throws {
        let user = Self.user(of: Self.devices[number])
        let notices = try core.database.read { transaction in
            let caller = Caller(user: user, role: user == "wes" ? .admin : .user)
            var context = Context(transaction: transaction, caller: caller, now: core.now, ids: core.ids)
            try context.connect(ConnectionID(rawValue: Int64(number)))
            return context.notices
        }
        subscriptions.add(Self.devices[number], as: ConnectionID(rawValue: Int64(number)))
        deliver(notices)
    }

    private static func user(of device: String) -> UserID { UserID(String(device.prefix { $0 != "/" })) }

    /// Performs an operation on a device, and delivers its notices. Returns the code of its refusal.
    @discardableResult
    func perform(_ operation: any Handled, on device: String, role: AppRole = .user) throws -> RoostError.Code? {
        var code: RoostError.Code?
        let connection = Self.devices.firstIndex(of: device).map(Int64.init)
        let notices = try core.notices {
            code = try core.code(operation, as: Self.user(of: device), role: role, connection: connection)
        }
        board = SignalBoard()
        deliver(notices)
        try sendSignals(notices)
        return code
    }

    /// Sends the board's due signals, as each node does.
    private func sendSignals(_ notices: [Notice]) throws {
        for notice in notices {
            switch notice {
            case .typing(let user, let channel): board.types(user, in: channel, at: 0)
            case .stoppedTyping(let user, let channel): board.stopsTyping(user, in: channel)
            case .read(let position, let channel): board.reads(position, in: channel)
            case .profileChanged(let user): board.profileChanged(of: user, at: 0)
            default: break
            }
        }
        for user in board.takeChangedProfiles(at: 0) {
            let shown = try core.inContext { context in
                try context.reportProfile(of: user)
                return context.notices
            }
            for case .profileShown(let user, let channel) in shown { board.shows(user, in: channel) }
        }
        for signal in board.takeDue(at: 0, presence: KnownPresence(watching: watchers)) {
            deliver(
                try core.inContext { context in
                    try context.notify(signal)
                    return context.notices
                })
        }
    }

    func forget() { (received, frames) = ([:], [:]) }

    /// Delivers what a node of a cluster sends in place of the channel's newest event.
    func deliverMissed() throws {
        let seq = try core.perform(GetChannel(channel: "room"), as: "ann").channel.counters.seq
        deliver(try core.database.read { try $0.missedEvents(of: .channel("room"), after: seq - 1, now: core.now).notices })
    }

    private func deliver(_ notices: [Notice]) {
        for step in EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]) {
            var ended: [String] = []
            subscriptions.deliver(step) { action in
                switch action {
                case .send(let bytes, _, let device): hear(bytes, on: device, of: notices)
                case .signal(let frame, let device): hear(frame, on: device)
                case .startedWatching(_, _, isShown: false), .stoppedWatching(_, _, isShown: false): break
                case .startedWatching(let user, let channel, _):
                    watchers.append(user)
                    board.watchingChanged(of: user, in: channel)
                case .stoppedWatching(let user, let channels, _):
                    watchers.removeAll { $0 == user }
                    for channel in channels { board.watchingChanged(of: user, in: channel) }
                // Joining and leaving change who is online too, beside their own events.
                case .cameOnline(let user, let channels), .wentOffline(let user, let channels):
                    guard notices.contains(where: { if case .presenceShared = $0 { true } else { false } }) else { break }
                    for channel in channels { board.onlineChanged(of: user, in: channel) }
                case .checkAccess(let changes, let device):
                    if case .user(_, true, _) = changes[.user(Self.user(of: device))] { ended.append(device) }
                default: break
                }
            }
            for device in ended {
                let number = Self.devices.firstIndex(of: device) ?? 0
                subscriptions.remove(ConnectionID(rawValue: Int64(number))) { _ in }
            }
        }
    }

    private func note(_ frame: [UInt8], of kind: String) {
        // Devices receive these in any order.
        let text = String(decoding: frame, as: UTF8.self)
        frames[kind] = min(frames[kind] ?? text, text)
    }

    /// Records a signal. One that says that nobody else types is left out.
    private func hear(_ frame: SignalFrame, on device: String) {
        for text in ServerFrame.texts(in: frame.bytes) {
            guard let signal = try? JSONDecoder().decode(Signal.self, from: Data(text)) else {
                Issue.record("A signal that can't be read: \(String(decoding: text, as: UTF8.self))")
                continue
            }
            if signal.typing?.users.isEmpty != true { note(text, of: signal.kind.rawValue) }
            if signal.typing?.users.isEmpty != true { received[device, default: []].append("\(signal.kind.rawValue) signal") }
        }
    }

    /// Records the events that a device receives. One that lacks messages which others have is marked.
    private func hear(_ bytes: ByteBuffer, on device: String, of notices: [Notice]) {
        for text in ServerFrame.texts(in: bytes) where text.starts(with: #"{"watching":"#.utf8) {
            guard let event = try? JSONDecoder().decode(EventFrame.self, from: Data(text)).event else {
                Issue.record("An event that can't be read: \(String(decoding: text, as: UTF8.self))")
                continue
            }
            note(text, of: event.kind.rawValue)
            let isConcealed = notices.contains { notice in
                guard case .event(let whole, _) = notice, whole.stream == event.stream, whole.seq == event.seq else { return false }
                return whole.rows.messages != nil && event.rows.messages == nil
            }
            let heard = "\(event.kind.rawValue) \(event.stream)"
            received[device, default: []].append(heard + (isConcealed ? " without its message" : ""))
        }
    }
}
