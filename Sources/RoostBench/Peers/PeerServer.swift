import Foundation

/// A peer in a separate process, on a free port of this machine.
final class PeerServer {
    private let peer: Peer
    private let process: ChildProcess
    private let port: UInt16

    var usage: ProcessUsage { process.usage }

    /// Nil if the program isn't installed.
    init?(_ peer: Peer, in directory: URL) throws {
        guard let program = Programs.find(peer.program) else { return nil }
        self.peer = peer
        port = try LoopbackSocket.freePort()
        let place = directory.appending(path: peer.program)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        process = try ChildProcess(program: program, try peer.arguments(port, place), errors: .nullDevice)
        let deadline = Clock.now() + 20_000_000_000
        while true {
            let socket = LoopbackSocket.connect(port: port)
            if socket >= 0 {
                close(socket)
                return
            }
            guard process.isRunning, Clock.now() < deadline else { throw BenchFailure("\(peer.name) didn't start") }
            usleep(2000)
        }
    }

    /// A socket that has subscribed to the topic.
    func subscriber(number: Int) throws -> LoadSocket { LoadSocket.plain(try introduced(peer.subscription), number: number) }

    /// A socket on which messages are published.
    func publisher() throws -> Int32 { try introduced(peer.introduction) }

    private func introduced(_ steps: [(says: [UInt8], answerEnds: [UInt8])]) throws -> Int32 {
        let socket = LoopbackSocket.connect(port: port)
        guard socket >= 0 else { throw BenchFailure("\(peer.name) accepts no connections") }
        for step in steps {
            _ = write(socket, step.says, step.says.count)
            var answer: [UInt8] = []
            var byte: UInt8 = 0
            while !answer.suffix(step.answerEnds.count).elementsEqual(step.answerEnds) {
                guard read(socket, &byte, 1) == 1, answer.count < 10_000 else {
                    throw BenchFailure("\(peer.name) refuses a client")
                }
                answer.append(byte)
            }
        }
        return socket
    }

    func end() { process.end() }
}

/// Programs of this machine.
enum Programs {
    /// Where a program is; nil if it isn't installed.
    static func find(_ name: String) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        // Servers are often installed where an ordinary user's path doesn't look.
        let places = path.split(separator: ":").map(String.init) + ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
        return places.map { URL(filePath: $0).appending(path: name) }.first(where: isProgram)
    }

    static func isProgram(_ url: URL) -> Bool { FileManager.default.isExecutableFile(atPath: url.path) }
}
