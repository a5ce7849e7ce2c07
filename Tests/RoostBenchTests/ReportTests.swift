import Testing

@testable import RoostBench

/// Counting and reporting, without a server.
@Suite struct ReportTests {
    @Test("a histogram gives the median and the 99th percentile of its values, to 3 %")
    func percentiles() {
        var times = Histogram()
        for microseconds in 1...1000 { times.record(UInt64(microseconds) * 1000) }
        #expect(times.count == 1000)
        for (share, expected) in [(0.5, 500.0), (0.99, 990), (1, 1000)] {
            #expect(abs(times.microseconds(share) / expected - 1) < 0.03)
        }
        var twice = times
        twice.add(times)
        #expect(twice.count == 2000 && twice.median == times.median)
        #expect(Histogram().median == 0)
    }

    @Test("a figure meets its goals if all of them are met, those about its floor by the ratio")
    func goals() {
        let cases: [(Figure, Bool?)] = [
            (Figure("none", 1, "s"), nil),
            (Figure("at most", 2, "s", goals: [.atMost(2)]), true),
            (Figure("at least", 1, "s", goals: [.atLeast(2)]), false),
            (Figure("by the floor", 3, "s", floor: 2, goals: [.ratioAtMost(1.5)]), true),
            (Figure("both", 3, "s", floor: 2, goals: [.atMost(10), .ratioAtMost(1.4)]), false),
            (Figure("without its floor", 3, "s", goals: [.ratioAtMost(1.4)]), false),
        ]
        for (figure, isMet) in cases { #expect(figure.isMet == isMet, "\(figure.name)") }
        #expect(cases[4].0.target == "≤ 10, ≤ 1.40 × floor")
    }

    @Test("compared costs are medians, and their ratio is above one if this build costs more")
    func comparison() {
        let cost = ComparedCost(name: "a send", unit: "µs", runs: [9, 6, 7], otherRuns: [5, 4, 6, 5])
        #expect([cost.median, cost.otherMedian, cost.ratio] == [7, 5, 1.4])
    }
}
