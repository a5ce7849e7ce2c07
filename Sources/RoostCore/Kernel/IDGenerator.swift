public import RoostAPI

/// Makes message ids: 63 bits that grow with time. Also channel ids for callers who give none; those end in random bits.
///
/// 41 bits of milliseconds since 2024, 10 bits of node, 12 bits of counter. It never goes back: if the clock stands still or
/// steps backwards, or if more than 4096 ids are made in one millisecond, it counts on from the last id, even after a restart.
/// It doesn't follow a clock beyond ``times``, but counts on, so no id is ever negative and a wrong clock doesn't use up the
/// ids.
///
/// It stores the last id that it may make, a second ahead of the clock, so most transactions don't have to store one. A
/// generator continued from there, after a restart or a failed transaction, makes ids after that one. They are up to a second
/// ahead of the time until the clock catches up.
public struct IDGenerator: Sendable {
    private static let epochMilliseconds: Int64 = 1_704_067_200_000
    /// The first time that doesn't fit in ids. The rest of the 41 bits is for counting on: some trillions of ids.
    private static let ticksMax: Int64 = (1 << 41) - (1 << 31)
    private static let lastMax: Int64 = (1 << 53) - 1
    private static let reservedMilliseconds: Int64 = 1000
    private static let base32 = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
    /// Of 5 bits each. The same number in each channel id, so ids with different beginnings differ.
    private static let randomCharacterCount = 12

    /// The times that fit in ids: from 2024 to August 2093.
    public static let times =
        Timestamp(milliseconds: epochMilliseconds)..<Timestamp(milliseconds: epochMilliseconds + ticksMax)

    /// The number that makes a generator's ids unique, and the database session that holds it.
    ///
    /// A later session can have the same number: another node may have held it in between.
    public struct Number: Hashable, Sendable {
        /// 0 to 1023, different for each node of a cluster.
        public let value: Int64
        public let session: Int64

        public init(_ value: Int64, session: Int64 = 0) {
            self.value = value & 1023
            self.session = session
        }
    }

    private let number: Number
    /// Milliseconds and counter of the last id, without the node.
    private var last: Int64
    /// The value in the database: no later run makes an id up to it.
    private var reserved: Int64
    private let randomBits: @Sendable () -> UInt64

    /// Creates a generator that has made no ids.
    ///
    /// - Parameter randomBits: The source of channel ids' ends: unpredictable bits, different at each call. By default all 0,
    ///   for tests and for rules that create no channel.
    public init(_ number: Number = Number(0), randomBits: @escaping @Sendable () -> UInt64 = { 0 }) {
        self.number = number
        self.randomBits = randomBits
        last = 0
        reserved = 0
    }

    /// Continues after the ids of earlier runs, whatever the clock says now.
    public init(
        _ number: Number = Number(0), continuing transaction: any Transaction, randomBits: @escaping @Sendable () -> UInt64 = { 0 }
    ) throws {
        self.init(number, randomBits: randomBits)
        last =
            try transaction.first("SELECT value FROM settings WHERE name = \(settingName)") { Int64($0.string()) ?? 0 }
            ?? 0
        // Before 0.2 a clock beyond the end made negative ids. There is room below them.
        if last > Self.lastMax || last < 0 { last = Self.ticksMax << 12 }
        reserved = last
    }

    /// Where several nodes write, no two concurrent writing transactions have the same.
    var numberValue: Int64 { number.value }

    /// Whether it was started by the session that has a number, and so knows all ids made with it.
    public func isOf(_ number: Number) -> Bool { self.number == number }

    /// The lowest id made at a time, by any generator whose clock is right.
    static func firstID(at time: Timestamp) -> MessageID {
        MessageID(rawValue: ticks(time) << 22)
    }

    /// Returns the time up to which ids may have been made, over all generators of a database; nil before the first.
    public static func newestTime(in transaction: any Transaction) throws -> Timestamp? {
        let all = try transaction.rows("SELECT value FROM settings WHERE name = 'ids' OR name LIKE 'ids.%'") {
            Int64($0.string()) ?? 0
        }
        return all.max().map { Timestamp(milliseconds: epochMilliseconds + ($0 >> 12)) }
    }

    /// Stores which ids are taken, at the end of each transaction that may have made some: one row, once a second.
    ///
    /// Ids a second or more ahead of the clock are stored one by one, so failed transactions, however many, don't take them further ahead.
    public mutating func save(in transaction: any Transaction, at now: Timestamp) throws {
        guard last > reserved else { return }
        let ahead = (Self.ticks(now) + Self.reservedMilliseconds) << 12
        let taken = min(max(last, ahead), Self.lastMax)
        try transaction.perform(
            """
            INSERT INTO settings (name, value) VALUES (\(settingName), \(String(taken)))
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """)
        reserved = taken
    }

    /// One row per generator, so no two writers wait for each other at it.
    private var settingName: String { number.value == 0 ? "ids" : "ids.\(number.value)" }

    public mutating func next(at now: Timestamp) -> MessageID {
        last = min(max(last + 1, Self.ticks(now) << 12), Self.lastMax)
        return MessageID(rawValue: (last >> 12) << 22 | number.value << 12 | (last & 4095))
    }

    /// Whether a generator made an id directly after another one.
    static func made(_ id: MessageID, rightAfter other: MessageID) -> Bool {
        func count(_ id: MessageID) -> Int64 { (id.rawValue >> 22) << 12 | (id.rawValue & 4095) }
        func number(_ id: MessageID) -> Int64 { (id.rawValue >> 12) & 1023 }
        return number(id) == number(other) && count(id) == count(other) + 1
    }

    /// Milliseconds since the generator's epoch, in 41 bits.
    private static func ticks(_ time: Timestamp) -> Int64 {
        min(max(0, time.milliseconds - epochMilliseconds), ticksMax)
    }

    /// Returns a new channel id in base 32: a message id's value, which keeps all generators' ids apart, and 60 random bits.
    ///
    /// Callers choose ids too, and know the time: without the random end anyone could take the next ids in advance.
    public mutating func nextChannelID(at now: Timestamp) -> ChannelID {
        var characters: [UInt8] = []
        var number = next(at: now).rawValue
        while number > 0 {
            characters.append(Self.base32[Int(number & 31)])
            number >>= 5
        }
        characters.reverse()
        var bits = randomBits()
        for _ in 0..<Self.randomCharacterCount {
            characters.append(Self.base32[Int(bits & 31)])
            bits >>= 5
        }
        return ChannelID(String(decoding: characters, as: UTF8.self))
    }
}
