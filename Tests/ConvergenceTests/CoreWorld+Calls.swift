import NIOCore
import RoostAPI
import RoostCore
import RoostTestSupport

@testable import RoostServer

extension CoreWorld {
    /// Performs what a client's frame calls, and answers as a socket does. Nil for what isn't a call.
    func reply(to frame: [UInt8], as user: UserID) throws -> [UInt8]? {
        switch ClientMessage(ByteBuffer(bytes: frame)) {
        case .call(let number, let operation): try reply(to: operation, number, as: user)
        case .refused(let number, let refusal): ReplyFrame.refusal(refusal, call: number)
        case .authenticate, .malformed: nil
        }
    }

    private func reply(to operation: some Handled, _ number: Int64, as user: UserID) throws -> [UInt8] {
        do {
            return try ReplyFrame.result(perform(operation, as: user), call: number)
        } catch let refusal as RoostError {
            return ReplyFrame.refusal(refusal, call: number)
        }
    }
}
