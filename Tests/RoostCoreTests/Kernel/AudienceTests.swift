import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// The audiences of operations (ledger §4): what reaches each device, inside and outside the audience.
@Suite("Audiences")
struct AudienceTests {
    /// An operation, and what each device receives from it.
    struct HeardOperation: CustomTestStringConvertible, Sendable {
        let what: String
        var type: ChannelType
        var before: [Step]
        let step: Step
        /// For users or groups of them, in the order of arrival.
        let heard: [(by: String, event: String)]
        let isRefused: Bool
        var testDescription: String { "\(what), in \(type)" }

        init(
            _ what: String, in type: ChannelType = .community, after before: [Step] = [], _ step: Step,
            _ heard: [(by: String, event: String)], isRefused: Bool = false
        ) {
            self.what = what
            self.type = type
            self.before = before
            self.step = step
            self.heard = heard
            self.isRefused = isRefused
        }

        /// What each device receives: an event is named by its kind and its stream.
        var expected: [String: [String]] {
            var expected: [String: [String]] = [:]
            for (groups, event) in heard {
                for group in groups.split(separator: " ") {
                    let devices = AudienceWorld.groups[String(group)] ?? [String(group)]
                    for device in devices { expected[device, default: []].append(event) }
                }
            }
            return expected
        }
    }

    /// An operation of a user on a device.
    struct Step: Sendable {
        let device: String
        let role: AppRole
        let make: @Sendable (AudienceWorld) -> any Handled

        static func by(_ device: String, _ operation: any Handled) -> Step { Step(device: device, role: .user) { _ in operation } }

        static func byAdmin(_ device: String, _ operation: any Handled) -> Step {
            Step(device: device, role: .admin) { _ in operation }
        }

        static func by(_ device: String, about make: @escaping @Sendable (MessageID) -> any Handled) -> Step {
            Step(device: device, role: .user) { make($0.message) }
        }
    }

    @Test("§4 R38 EM-34 an operation reaches its audience and nobody else", arguments: cases)
    func reaches(case heard: HeardOperation) throws {
        let world = try AudienceWorld(type: heard.type)
        for step in heard.before { #expect(try world.perform(step.make(world), on: step.device, role: step.role) == nil) }
        world.forget()
        let code = try world.perform(heard.step.make(world), on: heard.step.device, role: heard.step.role)
        #expect((code != nil) == heard.isRefused)
        #expect(world.received == heard.expected)
    }

    @Test("§4 docs/protocol.md has an example of every event and signal of this table, as a client gets it")
    func examples() throws {
        var (sent, missing) = ([String: String](), Set(Event.Kind.allCases.map(\.rawValue) + Self.signals.map(\.rawValue)))
        for heard in Self.cases where !missing.isEmpty {
            // The table gives the kinds that its operation makes.
            let kinds = Set(heard.expected.values.joined().map { String($0.prefix { $0 != " " }) })
            guard !heard.isRefused, !kinds.isDisjoint(with: missing) else { continue }
            let world = try AudienceWorld(type: heard.type)
            for step in heard.before { try world.perform(step.make(world), on: step.device, role: step.role) }
            world.forget()
            try world.perform(heard.step.make(world), on: heard.step.device, role: heard.step.role)
            for (kind, frame) in world.frames where missing.remove(kind) != nil { sent[kind] = frame }
        }
        // No operation makes what a node of a cluster sends in place of missed events.
        let world = try AudienceWorld(type: .community)
        try world.perform(EditMessage(channel: "room", message: world.message, text: "y"), on: "bob/1")
        world.forget()
        try world.deliverMissed()
        for (kind, frame) in world.frames where missing.remove(kind) != nil { sent[kind] = frame }
        #expect(missing.isEmpty)
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
        let section = page.components(separatedBy: "\n## Examples\n").last ?? ""
        let documented = section.split(separator: "\n").filter { $0.hasPrefix("{") }.map(String.init)
        let expected = sent.keys.sorted().compactMap { sent[$0] }
        #expect(documented == expected, "The section is to be:\n\(expected.joined(separator: "\n"))")
    }

    private static let signals: [Signal.Kind] = [
        .typingChanged, .watchingChanged, .readUpdated, .presenceChanged, .usersChanged, .custom,
    ]

    @Test("§4 R38 every kind of event has its place in the table")
    func isComplete() {
        let all = Set(Self.cases.flatMap(\.expected.values).joined())
        let heard = Set(all.filter { !$0.hasSuffix(" signal") }.map { String($0.prefix { $0 != " " }) })
        // Several changes in one event come from a node that missed the single ones.
        let kinds = Set(Event.Kind.allCases.map(\.rawValue)).subtracting([Event.Kind.changes.rawValue])
        #expect(heard == kinds)
        #expect(all.filter { $0.hasSuffix(" signal") } == Set(Self.signals.map { "\($0) signal" }))
        print("Audience table: \(Self.cases.count * AudienceWorld.devices.count) cells")
    }
}
