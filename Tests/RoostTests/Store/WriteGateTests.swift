import Foundation
import RoostAPI
import Synchronization
import Testing

@testable import Roost

@Suite("Store: keeping writes back", .timeLimit(.minutes(5)))
struct WriteGateTests {
    private struct Failure: Error {}

    /// A write that is under way until it is ended, and returns 1.
    private func write(through gate: WriteGate) async -> (write: Task<Int, any Error>, end: AsyncStream<Void>.Continuation) {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let write = Task {
            try await gate.pass {
                begin.finish()
                for await _ in ended {}
                return 1
            }
        }
        for await _ in begun {}
        return (write, end)
    }

    @Test("closing waits for running writes, and later ones are refused until it is open again")
    func closing() async throws {
        let gate = WriteGate()
        let (first, end) = await write(through: gate)
        let closing = Task { await gate.close() }
        try await until { gate.isClosed }
        let refusal = await #expect(throws: RoostError.self) { try await gate.pass {} }
        #expect(refusal?.code == .storageInUse)
        end.finish()
        #expect(try await first.value == 1)
        await closing.value
        await gate.close()
        gate.open()
        await #expect(throws: Failure.self) { try await gate.pass { throw Failure() } }
        // A failed write isn't running.
        await gate.close()
    }

    @Test("a gate that is opened again before a running write has ended lets others pass, and isn't closed when the write ends")
    func openedMeanwhile() async throws {
        let gate = WriteGate()
        let (first, end) = await write(through: gate)
        let isLetGo = Flag()
        let closing = Task { await gate.close { isLetGo.raise() } }
        try await until { gate.isClosed }
        gate.open()
        try await gate.pass {}
        end.finish()
        #expect(try await first.value == 1)
        await closing.value
        #expect(!gate.isClosed && !isLetGo.isRaised)
    }

    @Test("the gate can't be opened between the end of the last write and the release of what writes need")
    func oneStep() async throws {
        let gate = WriteGate()
        let (hasBegun, isOpen) = (Flag(), Flag())
        await gate.close {
            Thread.detachNewThread {
                hasBegun.raise()
                gate.open()
                isOpen.raise()
            }
            while !hasBegun.isRaised {}
            for _ in 0..<1_000_000 where isOpen.isRaised { break }
            #expect(!isOpen.isRaised)
        }
        try await until { isOpen.isRaised }
        #expect(!gate.isClosed)
    }

    @Test("a resource that can't be taken back leaves the gate closed, and writes are refused for that reason until it can be")
    func failed() async throws {
        let gate = WriteGate()
        await gate.close()
        #expect(throws: Failure.self) { try gate.open { throw Failure() } }
        #expect(gate.isClosed)
        await #expect(throws: Failure.self) { try await gate.pass {} }
        try gate.open {}
        try await gate.pass {}
        await gate.close()
        await #expect(throws: RoostError.self) { try await gate.pass {} }
    }

    /// An event that happens once.
    private final class Flag: Sendable {
        private let state = Atomic(false)
        var isRaised: Bool { state.load(ordering: .sequentiallyConsistent) }
        func raise() { state.store(true, ordering: .sequentiallyConsistent) }
    }
}
