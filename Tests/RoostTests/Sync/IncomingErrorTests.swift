import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Refusals of a server that may be newer than this version.
@Suite("Sync: errors that are read leniently")
struct IncomingErrorTests {
    @Test(
        "an error is read as far as this version knows it: an unknown code is final, unless the server says when to retry",
        arguments: [
            (
                #"{"code":"rate_limited","message":"Slow.","retryAfterMilliseconds":500,"limit":7,"field":"text","rule":"r","until":"1970-01-01T00:00:00.009Z"}"#,
                RoostError(
                    .rateLimited, "Slow.", field: "text", limit: 7, rule: "r", until: Timestamp(milliseconds: 9),
                    retryAfterMilliseconds: 500)
            ),
            // An unreadable part of it spoils nothing else.
            (
                #"{"code":"overloaded","message":7,"limit":"many","field":["text"],"until":"soon","retryAfterMilliseconds":500}"#,
                RoostError(.overloaded, "The server refused.", retryAfterMilliseconds: 500)
            ),
            (
                #"{"code":"muted","message":"Hush.","until":"1970-01-01T00:00:00.009Z","retryAfterMilliseconds":"soon"}"#,
                RoostError(.muted, "Hush.", until: Timestamp(milliseconds: 9))
            ),
            (
                #"{"code":"moving","message":"Later.","rule":"r","retryAfterMilliseconds":500}"#,
                RoostError(.unavailable, "Later. (moving)", rule: "moving", retryAfterMilliseconds: 500)
            ),
            (
                #"{"code":"gone","message":"No.","field":"text","limit":7,"until":"1970-01-01T00:00:00.009Z"}"#,
                RoostError(.notPermitted, "No. (gone)", field: "text", limit: 7, rule: "gone", until: Timestamp(milliseconds: 9))
            ),
            (#"{"code":"gone"}"#, RoostError(.notPermitted, "The server refused. (gone)", rule: "gone")),
        ])
    func read(json: String, error: RoostError) throws {
        #expect(try IncomingFrame(Array(#"{"reply":1,"error":\#(json)}"#.utf8), .standard).error == error)
    }

    @Test("SB-35 a message that is refused with an unknown code is sent again when the server says so")
    func sentAgain() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "ann-1")
        _ = client.take()
        let number = try #require(client.calls.first { $0.value == "message.send" }).key
        client.forgetCalls()
        try await client.receive(
            text: #"{"reply":\#(number),"error":{"code":"moving","message":"Later.","retryAfterMilliseconds":7000}}"#)
        let waits = client.take().compactMap { output -> Duration? in
            if case .startTimer(.outbox(Harness.channel), let wait) = output { wait } else { nil }
        }
        #expect(waits.count == 1 && waits[0] >= .seconds(7))
        #expect(try await client.texts() == ["one", "two", "hi…"])
    }
}
