import Dispatch
import Foundation

/// Standard input without a thread of the concurrency runtime blocked in a read.
enum StandardInput {
    private static let queue = DispatchQueue(label: "standard input")

    /// The next line without its end; nil at the end of the input. Each is read on request, so that nothing piles up.
    static func nextLine() async -> String? {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: readLine(strippingNewline: true)) }
        }
    }

    /// Bytes as they are typed.
    static func bytes() -> AsyncStream<[UInt8]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        queue.async {
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(STDIN_FILENO, &buffer, buffer.count)
                if count > 0 {
                    continuation.yield(Array(buffer[..<count]))
                } else if count == 0 || errno != EINTR {
                    break
                }
            }
            continuation.finish()
        }
        return stream
    }
}
