import Testing

@Suite("Where permissions are decided")
struct PermissionPlaceTests {
    /// The files of RoostCore that check a caller's role in the app: the table's own, and those for which ARCHITECTURE.md gives a reason.
    private static let files = [
        "Channels/CreateChannel.swift", "Channels/IdempotencyKeys.swift", "Channels/QueryChannelsFinding.swift",
        "Kernel/Context.swift", "Kernel/OperationKeys.swift", "Permissions/Permissions+Giving.swift",
        "Permissions/Permissions.swift", "Streams/Readers.swift",
    ]

    @Test("only the table of permissions and the places that ARCHITECTURE.md names check a caller's role in the app")
    func rolesOfTheApp() {
        // No word boundary before it: to Swift's, `caller.role` is one word.
        let looks = /\.isAdmin\b|\.actsAsOperator\b|role [!=]= \.(?:service|admin|moderator|guest|user)\b|\bextension AppRole\b/
        let found = SourceFile.sources.filter { $0.target == "RoostCore" && !$0.places(of: looks).isEmpty }
        #expect(found.map { $0.parts.dropFirst(2).joined(separator: "/") } == Self.files)
    }
}
