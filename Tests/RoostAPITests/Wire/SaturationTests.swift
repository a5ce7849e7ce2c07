import RoostAPI
import Testing

@Suite("Numbers from elsewhere")
struct SaturationTests {
    private static let numbers: [Int8] = [.min, .min + 1, -1, 0, 1, .max - 1, .max]

    @Test("a sum out of range is the nearest number in it", arguments: numbers)
    func nearest(first: Int8) {
        for second in Self.numbers {
            #expect(first.addingWithSaturation(second) == Int8(clamping: Int(first) + Int(second)))
            #expect(first.subtractingWithSaturation(second) == Int8(clamping: Int(first) - Int(second)))
        }
        #expect(UInt8.max.addingWithSaturation(1) == .max && UInt8.min.subtractingWithSaturation(1) == .min)
    }

    @Test(
        "whatever numbers a channel and a membership have, they give a number of unread messages",
        arguments: [Int.min, -1, 0, .max - 1, .max])
    func unread(number: Int) {
        let now = Timestamp(milliseconds: 0)
        var counters = ChannelCounters(seq: .max, memberCount: number, messageCount: number, ordinal: number, lastActivity: now)
        var membership = Membership(
            channelId: "c", role: .member, state: .member, joinedAt: now, joinedSeq: 0, readSeq: 0, readCount: .min,
            channelSeq: .min,
            userSeq: 0)
        #expect(Unread.count(in: counters, for: membership) == (number < 0 ? max(0, number - .min) : .max))
        let message = Message(
            messageId: MessageID(rawValue: 1), channelId: "c", seq: .max, changeSeq: .max, sender: "ann", clientId: "1", text: "hi",
            createdAt: now)
        membership.readCount = number
        Unread.receive(message, as: "ann", in: &membership)
        counters.add(message)
        #expect(membership.readCount == (number == .max ? .max : number + 1))
        #expect([counters.messageCount, counters.ordinal] == [membership.readCount, membership.readCount])
    }

    @Test("every time can be written, however far from the present")
    func times() {
        let texts = [Int64.min, -1, 0, .max].map { Timestamp(milliseconds: $0).description }
        #expect(
            texts == [
                "-292275055-05-16T16:47:04.192Z", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z",
                "292278994-08-17T07:12:55.807Z",
            ])
    }
}
