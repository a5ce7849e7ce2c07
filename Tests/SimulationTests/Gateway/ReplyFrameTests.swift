import RoostAPI
import Testing

@testable import RoostServer

/// The frames that answer calls.
@Suite struct ReplyFrameTests {
    @Test("a reply begins with the call's number and ends with its result: clients may look no further")
    func order() throws {
        let result = try ReplyFrame.result(["a": 1], call: 7)
        #expect(String(decoding: result, as: UTF8.self) == #"{"reply":7,"result":{"a":1}}"#)
        #expect(ReplyFrame.call(of: result) == 7)
        #expect(String(decoding: ReplyFrame.done(call: 8), as: UTF8.self) == #"{"reply":8,"done":true}"#)
    }
}
