import Testing

@testable import Roost

/// The timers of a client, of which one is slept for.
@Suite struct TimerScheduleTests {
    @Test("One sleep is under way, for the timer that ends first; it goes on when that is cancelled, and serves the next")
    func oneSleep() {
        var timers = TimerSchedule()
        #expect(timers.nextSleep() == nil)
        timers.start(.call(1), until: .seconds(30))
        #expect(timers.nextSleep() == .seconds(30))
        for number in 2...100 {
            timers.start(.call(Int64(number)), until: .seconds(30 + number))
            timers.cancel(.call(Int64(number - 1)))
            #expect(timers.nextSleep() == nil, "call \(number)")
        }
        timers.start(.liveness, until: .seconds(12))
        #expect(timers.nextSleep() == .seconds(12))
        timers.woke()
        #expect(timers.takeEnded(at: .seconds(11)) == nil)
        #expect(timers.takeEnded(at: .seconds(12)) == .liveness)
        #expect(timers.nextSleep() == .seconds(130))
        timers.cancel(.call(100))
        timers.woke()
        #expect(timers.takeEnded(at: .seconds(200)) == nil && timers.nextSleep() == nil)
    }

    @Test("Timers that have ended come in the order of their ends, without those that were cancelled or started again meanwhile")
    func order() {
        var timers = TimerSchedule()
        timers.start(.token, until: .seconds(3))
        timers.start(.users, until: .seconds(1))
        timers.start(.arrivals, until: .seconds(2))
        timers.start(.reconnect, until: .seconds(4))
        #expect(timers.takeEnded(at: .seconds(10)) == .users)
        timers.cancel(.arrivals)
        timers.start(.token, until: .seconds(20))
        #expect(timers.takeEnded(at: .seconds(10)) == .reconnect)
        #expect(timers.takeEnded(at: .seconds(10)) == nil)
        #expect(timers.nextSleep() == .seconds(20))
    }
}
