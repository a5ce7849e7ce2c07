import RoostAPI

/// The bytes of a socket's replies.
enum ReplyFrame {
    /// `{"reply":7,"result":…}`
    static func result(_ result: some Encodable, call: Int64) throws -> [UInt8] {
        var json = begin(call)
        json.key("result")
        try json.append(result)
        json.endObject()
        return json.bytes
    }

    /// `{"reply":7,"done":true}`: an earlier call with the same key did it.
    static func done(call: Int64) -> [UInt8] {
        var json = begin(call)
        json.member("done", true)
        json.endObject()
        return json.bytes
    }

    /// `{"reply":7,"error":{…}}`
    static func refusal(_ error: RoostError, call: Int64) -> [UInt8] {
        var json = begin(call)
        json.key("error")
        do {
            try json.append(error)
        } catch {
            // An error is strings and numbers, which always encode.
            json.raw(#"{"code":"internal_error","message":"The error couldn't be encoded."}"#)
        }
        json.endObject()
        return json.bytes
    }

    /// Returns the number of the call that a reply answers.
    static func call(of reply: [UInt8]) -> Int64? {
        let prefix = #"{"reply":"#.utf8
        guard reply.starts(with: prefix) else { return nil }
        var (call, isNegative): (Int64, Bool) = (0, false)
        for byte in reply.dropFirst(prefix.count) {
            switch byte {
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                // Accumulates below zero, where there is one more value.
                let (tens, isOver) = call.multipliedReportingOverflow(by: 10)
                let (next, isBeyond) = tens.subtractingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
                guard !isOver, !isBeyond else { return nil }
                call = next
            case UInt8(ascii: ","): return isNegative ? call : call == .min ? nil : -call
            default: return nil
            }
        }
        return nil
    }

    private static func begin(_ call: Int64) -> JSONBytes {
        var json = JSONBytes()
        json.beginObject()
        json.member("reply", call)
        return json
    }
}
