import RoostTestSupport
import Testing

/// The programs of the folder Examples, each from its beginning to its end against a real server, twice.
@Suite struct ExampleTests {
    @Test(
        "AM-19 AM-23 AM-24 AM-25 AM-26 AM-27 AM-28 AM-30 AM-32 AM-33 AM-34 AM-35 AM-38 AM-48 R06 R08 the way of Amity: create, query, join",
        .timeLimit(.minutes(2)))
    func createQueryJoin() async throws { try await runTwice("example-create-query-join") }

    @Test(
        "SB-05 SB-07 SB-13 SB-15 SB-16 SB-18 SB-19 SB-21 SB-26 SB-27 SB-30 SB-31 R14 R27 the way of Sendbird: distinct, invite, hide, filter",
        .timeLimit(.minutes(2)))
    func distinctInviteHide() async throws { try await runTwice("example-distinct-invite-hide") }

    @Test(
        "without a server an example says which address it waits for",
        arguments: ["example-create-query-join", "example-distinct-invite-hide"])
    func waiting(name: String) async throws {
        let isTold = try await CommandRun.hasError(
            "Waiting for a server at http://127.0.0.1:1. Is one running there?\n", from: name, ["http://127.0.0.1:1"],
            environment: ["ANN_TOKEN": "a", "BOB_TOKEN": "b"])
        #expect(isTold)
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
