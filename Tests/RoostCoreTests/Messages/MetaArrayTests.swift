import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Limits of the lists of texts of messages")
struct MetaArrayTests {
    private static func letters(_ count: Int) -> String { String(repeating: "a", count: count) }
    /// This many texts, in the order of a list.
    private static func values(_ count: Int) -> [String] { (100..<100 + count).map { "v\($0)" } }
    private static func lists(_ count: Int) -> [String: [String]] {
        Dictionary(uniqueKeysWithValues: names(count).map { ($0, []) })
    }
    private static func names(_ count: Int) -> [String] { (1...count).map { "n\($0)" } }

    /// Lists at a limit, lists one over it, and the limit.
    private struct Bound {
        let atLimit: [String: [String]]
        let over: [String: [String]]
        let limit: Int
        let unit: String
    }

    private static let bounds = [
        Bound(atLimit: lists(10), over: lists(11), limit: 10, unit: "lists"),
        Bound(atLimit: [letters(64): []], over: [letters(65): []], limit: 64, unit: "characters"),
        Bound(atLimit: ["k": values(100)], over: ["k": values(101)], limit: 100, unit: "values"),
        Bound(atLimit: ["k": [letters(128)]], over: ["k": [letters(129)]], limit: 128, unit: "characters"),
    ]

    @Test("§8.7 SB-37 R21 a message is sent with lists at each limit, and one over it is refused with its field and its limit")
    func sending() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        func send(_ lists: [String: [String]], _ clientId: String) -> SendMessage {
            SendMessage(channel: "general", clientId: ClientID(clientId), text: "x", metaArrays: lists)
        }
        for (number, bound) in Self.bounds.enumerated() {
            let before = try world.dump()
            let expected = RoostError.limitExceeded("metaArrays", limit: bound.limit, unit: bound.unit)
            #expect(try world.refusal(send(bound.over, "over"), as: "ann") == expected)
            let byAdmin = SendAdminMessage(channels: ["general"], clientId: "over", text: "x", metaArrays: bound.over)
            #expect(try world.refusal(byAdmin, as: "root", role: .admin) == expected)
            #expect(try world.dump() == before)
            #expect(try world.perform(send(bound.atLimit, "\(number)"), as: "ann").metaArrays == bound.atLimit)
        }
        // A character may take several bytes.
        let wide = ["k": [String(repeating: "é", count: 128)], String(repeating: "ß", count: 64): []]
        #expect(try world.perform(send(wide, "wide"), as: "ann").metaArrays == wide)
        let before = try world.dump()
        #expect(try world.refusal(send(["": []], "empty"), as: "ann")?.field == "metaArrays")
        #expect(try world.refusal(send(["k": [""]], "empty"), as: "ann")?.field == "metaArrays")
        #expect(try world.dump() == before)
    }

    /// A change that is refused, and the refusal.
    private struct Refused {
        let update: UpdateMetaArrays
        let refusal: RoostError

        init(_ update: UpdateMetaArrays, _ field: String, limit: Int, _ unit: String) {
            self.update = update
            refusal = .limitExceeded(field, limit: limit, unit: unit)
        }
    }

    /// The lists of the message of ``updating()``: nine, one of them full.
    private static let stored = lists(8).merging(["full": values(100)]) { $1 }

    private static func update(
        _ message: MessageID, create: [String]? = nil, add: [String: [String]]? = nil, removeValues: [String: [String]]? = nil,
        remove: [String]? = nil
    ) -> UpdateMetaArrays {
        UpdateMetaArrays(
            channel: "general", message: message, create: create, add: add, removeValues: removeValues, remove: remove)
    }

    private static func refusedUpdates(of message: MessageID) -> [Refused] {
        [
            // Limits of the change itself.
            Refused(update(message, create: [letters(65)]), "create", limit: 64, "characters"),
            Refused(update(message, create: names(11)), "create", limit: 10, "lists"),
            Refused(update(message, add: [letters(65): ["x"]]), "add", limit: 64, "characters"),
            Refused(update(message, add: lists(11)), "add", limit: 10, "lists"),
            Refused(update(message, add: ["n1": values(101)]), "add", limit: 100, "values"),
            Refused(update(message, add: ["n1": [letters(129)]]), "add", limit: 128, "characters"),
            Refused(update(message, removeValues: ["full": values(101)]), "removeValues", limit: 100, "values"),
            Refused(update(message, removeValues: ["full": [letters(129)]]), "removeValues", limit: 128, "characters"),
            Refused(update(message, remove: names(11)), "remove", limit: 10, "lists"),
            Refused(update(message, remove: [letters(65)]), "remove", limit: 64, "characters"),
            // Limits of the message after the change.
            Refused(update(message, create: ["tenth", "eleventh"]), "create", limit: 10, "lists"),
            Refused(update(message, add: ["full": ["one more"]]), "add", limit: 100, "values"),
        ]
    }

    @Test("§8.7 SB-37 R21 lists are changed up to each limit, and a change one over it is refused as a whole")
    func updating() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let message = try world.perform(
            SendMessage(channel: "general", clientId: "1", text: "x", metaArrays: Self.stored), as: "ann"
        ).messageId
        let before = try world.dump()
        for refused in Self.refusedUpdates(of: message) {
            #expect(try world.refusal(refused.update, as: "ann") == refused.refusal)
        }
        // The other parts of a refused change aren't made either.
        let mixed = Self.update(message, create: ["tenth"], add: ["full": ["one more"]], remove: ["n1"])
        #expect(try world.refusal(mixed, as: "ann")?.field == "add")
        #expect(try world.dump() == before)

        // Removals are made first, and make room; so does replacing a value.
        let moved = try world.perform(
            Self.update(message, create: ["m1", "m2"], add: ["full": ["w"]], removeValues: ["full": ["v100"]], remove: ["n1"]),
            as: "ann")
        var lists = Self.stored
        lists["n1"] = nil
        for name in ["m1", "m2"] { lists[name] = [] }
        lists["full"] = Array(Self.values(100).dropFirst()) + ["w"]
        #expect(moved.metaArrays == lists && lists.count == 10)
        // The longest name and the longest value, and a hundred of them.
        let name = Self.letters(64)
        let filled = try world.perform(
            Self.update(message, create: [name], add: [name: Self.values(99) + [Self.letters(128)]], remove: ["n2"]), as: "ann")
        lists["n2"] = nil
        lists[name] = [Self.letters(128)] + Self.values(99)
        #expect(filled.metaArrays == lists)
        #expect(try world.perform(GetMessage(channel: "general", message: message), as: "ann").metaArrays == lists)
    }
}
