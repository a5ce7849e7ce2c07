import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: the order of calls", .timeLimit(.minutes(5)))
struct CallOrderTests {
    @Test("calls go in the order in which they took their turns, whichever of them is ready first, and also past those that fail")
    func order() async {
        let order = CallOrder()
        let (sent, continuation) = AsyncStream.makeStream(of: Int.self)
        var turns = (0..<200).map { (number: $0, turn: order.take()) }
        await withTaskGroup(of: Void.self) { group in
            while let (number, turn) = turns.popLast() {
                group.addTask {
                    if number.isMultiple(of: 3) { await Task.yield() }
                    await turn.comes()
                    // One that fails never passes its turn on, but lets go of it.
                    guard !number.isMultiple(of: 7) else { return }
                    continuation.yield(number)
                    turn.pass()
                }
            }
        }
        continuation.finish()
        var numbers: [Int] = []
        for await number in sent { numbers.append(number) }
        #expect(numbers == (0..<200).filter { !$0.isMultiple(of: 7) })
    }
}
