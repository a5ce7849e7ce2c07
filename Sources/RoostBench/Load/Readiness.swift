import Foundation

#if os(Linux)
import CEpoll
#endif

/// Tells which of many sockets have something to read, or room to write again. It costs what is ready, however many there are.
final class Readiness {
    #if os(Linux)
    private let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    private var ready = [epoll_event](repeating: epoll_event(), count: 1024)
    /// Each change is told once: what is ready must be read, or written, until nothing is left.
    private static let changes = EPOLLIN.rawValue | EPOLLOUT.rawValue | 1 << 31

    deinit { close(descriptor) }

    func add(_ socket: Int32, number: Int) throws {
        var event = epoll_event(events: Self.changes, data: epoll_data_t(u64: UInt64(number)))
        guard epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event) == 0 else {
            throw BenchFailure("can't wait for a socket: \(String(cString: strerror(errno)))")
        }
    }

    /// Returns the numbers of sockets that may have something to read or room to write.
    func wait(milliseconds: Int32) -> [Int] {
        let count = epoll_wait(descriptor, &ready, Int32(ready.count), milliseconds)
        return ready.prefix(max(0, Int(count))).map { Int($0.data.u64) }
    }
    #else
    private var polled: [pollfd] = []
    private var numbers: [Int] = []

    func add(_ socket: Int32, number: Int) throws {
        polled.append(pollfd(fd: socket, events: Int16(POLLIN), revents: 0))
        numbers.append(number)
    }

    /// Returns the numbers of sockets that may have something to read; now and then of all, which may have room to write.
    func wait(milliseconds: Int32) -> [Int] {
        let count = poll(&polled, nfds_t(polled.count), milliseconds)
        return count == 0 ? numbers : numbers.indices.filter { polled[$0].revents != 0 }.map { numbers[$0] }
    }
    #endif
}
