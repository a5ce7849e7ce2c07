import Foundation
import RoostAPI
import Testing

@testable import RoostCommand

@Suite("Operations as requests over HTTP")
struct CallRequestTests {
    @Test("fields go where the protocol puts them: path, query or body")
    func places() throws {
        let query = QueryChannels(membership: .all, types: [.community, .live], includingTags: ["a,b", "c d"], limit: 5)
        let requests = [
            try CallRequest(GetChannel(channel: "a b?é")), try CallRequest(query),
            try CallRequest(RemoveMembers(channel: "team", users: ["bob"])), try CallRequest(LeaveChannel(channel: "team")),
            try CallRequest(DeleteChannel(channel: "team")),
        ]
        let lines = requests.map { "\($0.method) \($0.target) \(String(decoding: $0.body ?? [], as: UTF8.self))" }
        #expect(
            lines == [
                "GET /v1/channels/a%20b%3F%C3%A9 ",
                "GET /v1/channels?includingTags=a%2Cb,c%20d&limit=5&membership=all&types=community,live ",
                #"POST /v1/channels/team/members/remove {"users":["bob"]}"#, "POST /v1/channels/team/leave {}",
                "DELETE /v1/channels/team ",
            ])
    }

    @Test("SB-12 a token says whom it is for; anything else says nothing")
    func tokenOwners() {
        let payload = Data(#"{"sub":"ünal","role":"service"}"#.utf8).base64EncodedString().replacing("=", with: "")
        let url = payload.replacing("+", with: "-").replacing("/", with: "_")
        let owners = ["h.\(url).s", "h.e30.s", "abc", ""].map { TokenOwner($0).map { "\($0.user) \($0.role.rawValue)" } }
        #expect(owners == ["ünal service", nil, nil, nil])
    }
}
