import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// The programs of the folder Examples, each run twice from start to end against a real server.
@Suite struct ExampleTests {
    @Test(
        "AM-19 AM-23 AM-24 AM-25 AM-26 AM-27 AM-28 AM-30 AM-32 AM-33 AM-34 AM-35 AM-48 R06 R08 the way of Amity: create, query, join",
        .timeLimit(.minutes(5)))
    func createQueryJoin() async throws { try await runTwice("example-create-query-join") }

    @Test(
        "SB-05 SB-07 SB-13 SB-15 SB-16 SB-18 SB-19 SB-21 SB-26 SB-27 SB-30 SB-31 R14 R27 the way of Sendbird: distinct, invite, hide, filter",
        .timeLimit(.minutes(5)))
    func distinctInviteHide() async throws { try await runTwice("example-distinct-invite-hide") }

    @Test(
        "SB-34 SB-37 SB-48 SB-50 SB-51 SB-53 SB-54 SB-55 SB-56 SB-58 SB-59 SB-60 R22 the way of Sendbird: send, load both ways, edit, delete, reset",
        .timeLimit(.minutes(5)))
    func sendLoadEdit() async throws { try await runTwice("example-send-load-edit") }

    @Test(
        "MN-01 MN-04 MN-09 MN-10 MN-12 MN-16 MN-17 R35 the way of Amity: mentions suggested, sent, shown, read and edited in",
        .timeLimit(.minutes(5)))
    func mentionPeople() async throws { try await runTwice("example-mention-people") }

    @Test(
        "ST-05 ST-06 ST-08 ST-10 ST-13 ST-14 ST-16 R06 R17 R26 the way of Stream: watch, see who watches, types and reads",
        .timeLimit(.minutes(5)))
    func watchTogether() async throws { try await runTwice("example-watch-together") }

    @Test(
        "AM-43 AM-44 AM-45 AM-46 R25 the way of Amity: read on one of two devices, and stop, also by going", .timeLimit(.minutes(5))
    )
    func readTogether() async throws { try await runTwice("example-read-together") }

    @Test(
        "without a server an example says which address it waits for",
        arguments: [
            "example-create-query-join", "example-distinct-invite-hide", "example-send-load-edit", "example-mention-people",
            "example-watch-together", "example-read-together",
        ])
    func waiting(name: String) async throws {
        let isReported = try await CommandRun.hasError(
            "Waiting for a server at http://127.0.0.1:1. Is one running there?\n", from: name, ["http://127.0.0.1:1"],
            environment: ["ANN_TOKEN": "a", "BOB_TOKEN": "b"])
        #expect(isReported)
        // With or without a server, a missing token gets nowhere.
        let run = try await CommandRun.example(name, arguments: ["http://127.0.0.1:1"], environment: ["ANN_TOKEN": "a"], input: "")
        #expect(run.status == 64 && run.errors == "BOB_TOKEN is missing: a token, made by roost token.\n")
    }

    private func runTwice(_ name: String) async throws {
        let server = try await TestServer()
        for _ in 1...2 {
            let run = try await CommandRun.example(name, on: server)
            #expect(run.status == 0, "\(run.output)\(run.errors)")
        }
        try await server.stop()
    }
}
