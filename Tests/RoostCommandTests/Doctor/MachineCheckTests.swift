import Foundation
import RoostAPI
import RoostServer
import Testing

@testable import RoostCommand

/// The findings of `roost doctor` about the machine.
@Suite struct MachineCheckTests {
    @Test("the clock passes at times at which a server starts, and fails at all others")
    func clock() {
        let (first, end) = (RoostServer.times.lowerBound.milliseconds / 1000, RoostServer.times.upperBound.milliseconds / 1000)
        let results = [0, first - 1, first, end - 1, end + 1].map { seconds in
            MachineChecks.clock(at: Date(timeIntervalSince1970: Double(seconds))).result
        }
        #expect(results == [.fail, .fail, .ok, .ok, .fail])
    }
}
