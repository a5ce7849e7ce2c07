import Foundation
import RoostAPI
import Testing

@testable import RoostCommand

@Suite struct ClientFilesTests {
    @Test(
        "a chat's files are where the environment says, and never in the current directory",
        arguments: [
            (["XDG_STATE_HOME": "/state", "HOME": "/home/ann"], "/state/roost/"),
            (["XDG_STATE_HOME": "", "HOME": "/home/ann"], "/home/ann/.local/state/roost/"),
            (["XDG_STATE_HOME": "relative", "HOME": "/home/ann"], "/home/ann/.local/state/roost/"),
            (["HOME": "/home/ann"], "/home/ann/.local/state/roost/"),
            (["HOME": ""], URL.homeDirectory.appending(path: ".local/state/roost/").path(percentEncoded: false)),
        ])
    func place(environment: [String: String], path: String) {
        #expect(ClientFiles.defaultParent(environment: environment).path(percentEncoded: false) == path)
    }

    @Test("if a folder is in use or can't be made, memory is used, with the reason; a named folder is an error")
    func memory() throws {
        let url = try #require(URL(string: "http://127.0.0.1:1"))
        let place = FileManager.default.temporaryDirectory.appending(path: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: place) }
        let first = try ClientFiles(user: "ann", url: url, directory: place.path, isOptional: false)
        #expect(first.directory != nil && first.memoryReason == nil)
        let second = #expect(throws: Failure.self) {
            _ = try ClientFiles(user: "ann", url: url, directory: place.path, isOptional: false)
        }
        #expect(second?.description.hasSuffix("is in use by another roost chat.") == true)
        let third = #expect(throws: Failure.self) {
            _ = try ClientFiles(user: "ann", url: url, directory: "/dev/null/x", isOptional: false)
        }
        #expect(third?.description.contains("can't be created: ") == true)
        withExtendedLifetime(first) {}
    }

    @Test(
        "users whose ids look alike in a folder's name can use their files at the same time",
        arguments: [("王芳", "李娜"), ("Jürgen", "Jörgen"), ("a.b", "a_b")] as [(UserID, UserID)])
    func likeIds(one: UserID, other: UserID) throws {
        let url = try #require(URL(string: "http://127.0.0.1:1"))
        let place = FileManager.default.temporaryDirectory.appending(path: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: place) }
        let first = try ClientFiles(user: one, url: url, directory: place.path, isOptional: false)
        let second = try ClientFiles(user: other, url: url, directory: place.path, isOptional: false)
        let isKept = [first.directory != nil, second.directory != nil]
        #expect(isKept == [true, true])
        withExtendedLifetime(first) {}
        withExtendedLifetime(second) {}
    }
}
