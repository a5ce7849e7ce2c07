import Foundation

#if os(Linux)
import CEpoll
#endif

/// Reports which of many sockets have something to read, or can be written again. The cost depends on the ready ones, not on their total number.
final class Readiness {
    #if os(Linux)
    private let descriptor = roost_epoll_open()
    private var ready = [UInt64](repeating: 0, count: 1024)

    deinit { close(descriptor) }

    /// Each change is reported once: a ready socket must be read, or written, until nothing is left.
    func add(_ socket: Int32, number: Int) throws {
        guard roost_epoll_add(descriptor, socket, UInt64(number)) == 0 else {
            throw BenchFailure("can't wait for a socket: \(String(cString: strerror(errno)))")
        }
    }

    /// Returns the numbers of sockets that may have something to read or room to write.
    ///
    /// The wait isn't rounded to milliseconds, which would delay calls due in between.
    func wait(nanoseconds: UInt64) -> [Int] {
        let count = roost_epoll_wait(descriptor, &ready, Int32(ready.count), nanoseconds)
        return ready.prefix(max(0, Int(count))).map(Int.init)
    }
    #else
    private var polled: [pollfd] = []
    private var numbers: [Int] = []

    func add(_ socket: Int32, number: Int) throws {
        polled.append(pollfd(fd: socket, events: Int16(POLLIN), revents: 0))
        numbers.append(number)
    }

    /// Returns the numbers of sockets that may have something to read; now and then of all, which may be writable.
    func wait(nanoseconds: UInt64) -> [Int] {
        let count = poll(&polled, nfds_t(polled.count), Int32(clamping: nanoseconds / 1_000_000 + 1))
        return count == 0 ? numbers : numbers.indices.filter { polled[$0].revents != 0 }.map { numbers[$0] }
    }
    #endif
}
