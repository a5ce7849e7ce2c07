import Foundation

extension FileHandle {
    /// The output of another process, piece by piece, until its end.
    ///
    /// A dedicated thread reads: Foundation's readability handler can outlive its descriptor, which ends the test process.
    func pieces(atEnd: @escaping @Sendable () -> Void = {}) -> Mailbox<String> {
        let output = Mailbox<String>()
        Thread.detachNewThread {
            while true {
                let data = self.availableData
                if data.isEmpty { break }
                output.put(String(decoding: data, as: UTF8.self))
            }
            output.close()
            atEnd()
        }
        return output
    }
}
