import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// A lane's operations that wait for a lock, in isolation.
@Suite("Set aside")
struct SetAsideTests {
    private let start = ContinuousClock.now

    /// Operations named `channel number`; the number is their time of arrival.
    private func jobs(_ names: [String]) -> [Job] {
        names.map { name in
            let (channel, number) = (name.prefix { $0 != " " }, name.drop { $0 != " " }.dropFirst())
            let job = Job(
                .init(operation: name, scope: .channel(ChannelID(String(channel)))), caller: Caller(user: "ann"), run: { _ in [] },
                destination: .waiting { _ in })
            job.queuedAt = UInt64(number) ?? 0
            return job
        }
    }

    private func names(_ jobs: [Job]?) -> [String]? { jobs?.map(\.operation) }

    @Test("I3 operations for a channel that is set aside follow it, in the order of arrival; other channels continue")
    func followers() {
        var aside = DeferredJobs(patience: .seconds(10), countMax: 100)
        let free = aside.takeFollowers(of: jobs(["a 1", "b 2"]))
        #expect(names(free.others) == ["a 1", "b 2"] && free.refused.isEmpty)
        aside.put(jobs(["a 1", "a 3"]), at: start)
        let (others, refused) = aside.takeFollowers(of: jobs(["b 4", "a 5", "c 6", "a 7"]))
        #expect(names(others) == ["b 4", "c 6"] && refused.isEmpty)
        #expect(aside.count == 4)
        let next = aside.takeNext(at: start + DeferredJobs.retryInterval)
        #expect(names(next?.jobs) == ["a 1", "a 3", "a 5", "a 7"])
        #expect(next?.since == start)
        #expect(aside.isEmpty && aside.count == 0)
    }

    @Test("I23 operations that move no stream follow only their caller's, and changes of access and of rules only one another")
    func withoutStream() {
        func job(_ name: String, by user: UserID, _ scope: Scope = Scope()) -> Job {
            Job(.init(operation: name, scope: scope), caller: Caller(user: user), run: { _ in [] }, destination: .waiting { _ in })
        }
        var aside = DeferredJobs(patience: .seconds(10), countMax: 100)
        aside.put([job("deactivate", by: "root", Scope(access: [.user("bob")]))], at: start)
        let first = aside.takeFollowers(of: [
            job("query of root", by: "root"), job("query of ann", by: "ann"), job("type", by: "other", .rules),
        ])
        #expect(names(first.others) == ["query of root", "query of ann"])
        #expect(names(aside.takeNext(at: start + .seconds(1))?.jobs) == ["deactivate", "type"])

        aside.put([job("query of ann", by: "ann")], at: start)
        let second = aside.takeFollowers(of: [
            job("query of bob", by: "bob"), job("again", by: "ann"), job("profile of ann", by: "ann", .user("ann")),
            job("revoke", by: "ann", Scope(access: [.token("t")])),
        ])
        #expect(names(second.others) == ["query of bob", "profile of ann", "revoke"])
        #expect(names(aside.takeNext(at: start + .seconds(1))?.jobs) == ["query of ann", "again"])
    }

    @Test("I3 operations put back precede later ones, and have waited since their arrival")
    func putBack() {
        var aside = DeferredJobs(patience: .seconds(2), countMax: 100)
        aside.put(jobs(["a 1", "a 2"]), at: start)
        _ = aside.takeFollowers(of: jobs(["a 4"]))
        aside.put(jobs(["a 3"]), at: start)
        // Put before all others, as the lane's batch preceded its followers.
        let first = aside.takeNext(at: start + .milliseconds(300))
        #expect(names(first?.jobs) == ["a 3", "a 1", "a 2", "a 4"])
        let later = start + .milliseconds(400)
        aside.put(first?.jobs ?? [], at: later, since: first?.since)
        _ = aside.takeFollowers(of: jobs(["a 5"]))
        #expect(aside.takeNext(at: later + .milliseconds(249)) == nil)
        let second = aside.takeNext(at: later + .milliseconds(250))
        #expect(names(second?.jobs) == ["a 3", "a 1", "a 2", "a 4", "a 5"])
        #expect(second?.since == start)
        #expect(aside.isPatient(since: start, at: start + .milliseconds(1999)))
        #expect(!aside.isPatient(since: start, at: start + .seconds(2)))
    }

    @Test(
        "I3 NF-04 no more operations are taken together than one transaction may have; the rest is due at once, after other channels"
    )
    func batches() {
        var aside = DeferredJobs(patience: .seconds(10), countMax: 1000)
        let all = (1...600).map { "a \($0)" }
        aside.put(jobs(all), at: start)
        aside.put(jobs(["b 601"]), at: start + .milliseconds(1))
        let now = start + .seconds(1)
        let first = aside.takeNext(at: now)
        #expect(names(first?.jobs) == Array(all.prefix(512)))
        #expect(aside.isBehind && aside.count == 89)
        _ = aside.takeFollowers(of: jobs(["a 602"]))
        #expect(names(aside.takeNext(at: now)?.jobs) == ["b 601"])
        let rest = aside.takeNext(at: now)
        #expect(names(rest?.jobs) == Array(all.suffix(88)) + ["a 602"])
        #expect(rest?.since == start)
        #expect(!aside.isBehind && aside.isEmpty && aside.count == 0)
    }

    @Test("I3 operations put back before the rest of their channel are retried with it after the usual time, or given up with it")
    func rest() {
        var aside = DeferredJobs(patience: .seconds(10), countMax: 100, batchSizeMax: 2)
        aside.put(jobs(["a 1", "a 2", "a 3"]), at: start)
        let now = start + .seconds(1)
        let first = aside.takeNext(at: now)
        aside.put(first?.jobs ?? [], at: now, since: first?.since)
        #expect(aside.takeNext(at: now + .milliseconds(249)) == nil)
        let second = aside.takeNext(at: now + .milliseconds(250))
        #expect(names(second?.jobs) == ["a 1", "a 2"])
        #expect(names(aside.takeFollowing(second?.jobs ?? [])) == ["a 3"])
        #expect(aside.isEmpty && aside.count == 0)
    }

    @Test("I3 the channel that was tried longest ago is tried next")
    func turns() {
        var aside = DeferredJobs(patience: .seconds(10), countMax: 100)
        for (place, name) in ["a 1", "b 2", "c 3"].enumerated() { aside.put(jobs([name]), at: start + .milliseconds(place)) }
        let late = start + .seconds(1)
        var order: [String] = []
        for _ in 0..<4 {
            guard let next = aside.takeNext(at: late) else { break }
            order += names(next.jobs) ?? []
            // The first is still held, and tried again after the others.
            if next.jobs.first?.operation == "a 1", order.count == 1 {
                aside.put(next.jobs, at: late - .milliseconds(500), since: next.since)
            }
        }
        #expect(order == ["a 1", "b 2", "c 3", "a 1"])
        #expect(aside.isEmpty)
    }

    @Test("I3 after an attempt that waited in vain the lane does other work for twice as long, however many channels wait")
    func pause() {
        var aside = DeferredJobs(patience: .seconds(10), countMax: 100)
        for (place, name) in ["a 1", "b 2"].enumerated() { aside.put(jobs([name]), at: start + .milliseconds(place)) }
        let first = aside.takeNext(at: start + .milliseconds(250))
        #expect(names(first?.jobs) == ["a 1"])
        let failed = start + .milliseconds(750)
        aside.put(first?.jobs ?? [], at: failed, since: first?.since)
        aside.pause(after: .milliseconds(500), at: failed)
        #expect(aside.takeNext(at: failed + .milliseconds(999)) == nil)
        #expect(names(aside.takeNext(at: failed + .seconds(1))?.jobs) == ["b 2"])
        // A successful one is followed by the next at once.
        #expect(names(aside.takeNext(at: failed + .seconds(1))?.jobs) == ["a 1"])
    }

    @Test("I1 followers beyond the limit are refused and not counted, and those that are taken make room again")
    func room() {
        var aside = DeferredJobs(patience: .seconds(10), countMax: 3)
        aside.put(jobs(["a 1"]), at: start)
        aside.put(jobs(["b 2"]), at: start + .milliseconds(1))
        let (others, refused) = aside.takeFollowers(of: jobs(["a 3", "a 4", "c 5", "b 6"]))
        #expect(names(others) == ["c 5"] && names(refused) == ["a 4", "b 6"])
        #expect(aside.count == 3)
        #expect(names(aside.takeNext(at: start + .seconds(1))?.jobs) == ["a 1", "a 3"])
        #expect(aside.count == 1)
        let again = aside.takeFollowers(of: jobs(["b 7", "b 8", "b 9"]))
        #expect(again.others.isEmpty && names(again.refused) == ["b 9"])
        #expect(aside.count == 3)
    }

    @Test("I1 all of them are taken in the order of arrival, whatever their channel")
    func all() {
        var aside = DeferredJobs(patience: .seconds(10), countMax: 100)
        for names in [["b 2", "b 5"], ["c 3"], ["a 1", "a 4"]] { aside.put(jobs(names), at: start) }
        _ = aside.takeFollowers(of: jobs(["c 6", "a 7"]))
        #expect(names(aside.takeAll()) == ["a 1", "b 2", "c 3", "a 4", "b 5", "c 6", "a 7"])
        #expect(aside.isEmpty && aside.count == 0)
        #expect(aside.takeAll().isEmpty)
        // No channel is set aside now.
        #expect(names(aside.takeFollowers(of: jobs(["a 8"])).others) == ["a 8"])
    }

    @Test(
        "operations set aside, taken and put back at random are taken once each, in their channel's order",
        arguments: Seeds.first(200))
    func random(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let countMax = random.number(1...20)
        var aside = DeferredJobs(patience: .seconds(10), countMax: countMax, batchSizeMax: random.number(1...6))
        var now = start
        var (came, gone): ([String: [String]], [String: [String]]) = ([:], [:])
        var (held, number) = (0, 0)
        for _ in 0..<200 {
            now += .milliseconds(random.number(0...200))
            let batch = jobs(
                (0..<random.number(0...4)).map { _ in
                    number += 1
                    return "\(random.pick(["a", "b", "c"])) \(number)"
                })
            let (others, refused) = aside.takeFollowers(of: batch)
            let isRefused = Set(refused.map(\.operation))
            for job in batch where !isRefused.contains(job.operation) {
                came[String(job.operation.prefix(1)), default: []].append(job.operation)
            }
            #expect(refused.isEmpty || aside.count >= countMax)
            aside.put(others, at: now)
            held += batch.count - refused.count
            if let next = aside.takeNext(at: now) {
                if random.once(in: 2) {
                    aside.put(next.jobs, at: now, since: next.since)
                } else {
                    held -= next.jobs.count
                    for job in next.jobs { gone[String(job.operation.prefix(1)), default: []].append(job.operation) }
                }
            }
            #expect(aside.count == held)
            #expect(aside.isEmpty == (held == 0))
        }
        for job in aside.takeAll() { gone[String(job.operation.prefix(1)), default: []].append(job.operation) }
        #expect(gone == came)
    }
}
