import Testing

@testable import Roost

/// The timers of a client, with one sleep for all.
@Suite struct TimerScheduleTests {
    @Test("one sleep is running, for the timer that ends first; it continues when that is cancelled, and serves the next")
    func oneSleep() {
        var timers = TimerSchedule()
        let first = timers.start(.call(1), until: .seconds(30))
        #expect(first == .seconds(30))
        for number in 2...100 {
            let next = timers.start(.call(Int64(number)), until: .seconds(30 + number))
            timers.cancel(.call(Int64(number - 1)))
            #expect(next == nil, "call \(number)")
        }
        let earlier = timers.start(.liveness, until: .seconds(12))
        #expect(earlier == .seconds(12))
        var woke = timers.woke(at: .seconds(12))
        #expect(woke.ended == [.liveness] && woke.next == .seconds(130))
        timers.cancel(.call(100))
        woke = timers.woke(at: .seconds(130))
        #expect(woke.ended == [] && woke.next == nil)
        let anew = timers.start(.call(101), until: .seconds(160))
        #expect(anew == .seconds(160))
    }

    @Test("expired timers are returned in the order of their ends, without those cancelled or restarted meanwhile")
    func order() {
        var timers = TimerSchedule()
        for (timer, end) in [(.token, 3), (.users, 1), (.arrivals, 2), (.reconnect, 4)] as [(Sync.Timer, Int)] {
            _ = timers.start(timer, until: .seconds(end))
        }
        timers.cancel(.arrivals)
        _ = timers.start(.token, until: .seconds(20))
        let woke = timers.woke(at: .seconds(10))
        #expect(woke.ended == [.users, .reconnect] && woke.next == .seconds(20))
        // A sleep that was replaced may still end.
        let early = timers.woke(at: .seconds(11))
        #expect(early.ended == [] && early.next == .seconds(20))
    }

    @Test("an expired timer is reported once, and not if it was restarted or cancelled since, or is about to be")
    func outdated() {
        var timers = TimerSchedule()
        let all: [Sync.Timer] = [.liveness, .token, .users, .arrivals, .reconnect]
        for timer in all { _ = timers.start(timer, until: .seconds(1)) }
        _ = timers.woke(at: .seconds(1))
        _ = timers.start(.liveness, until: .seconds(2))
        timers.cancel(.token)
        timers.note(.startTimer(.users, .seconds(1)))
        timers.note(.cancelTimer(.arrivals))
        #expect(all.filter { timers.takeEnded($0) } == [.reconnect])
        #expect(all.filter { timers.takeEnded($0) } == [])
        _ = timers.woke(at: .seconds(2))
        #expect(all.filter { timers.takeEnded($0) } == [.liveness])
    }
}
