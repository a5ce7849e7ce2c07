// swift-tools-version: 6.2

import PackageDescription

/// Settings of every target of this package. A warning in our own code is an error; a warning in a dependency is not.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

/// For the code that the tests spend most of their time in: `scripts/build-debug` optimises it. A rebuild after a change is faster without.
let optimised = settings + (Context.environment["ROOST_TEST_OPTIMISED"] == "1" ? [.unsafeFlags(["-O"])] : [])

/// A dependency of only the server and the command line, resolved with the trait `Server`. An app that depends on `Roost` resolves none of them.
func server(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Server"]))
}

/// WebSockets over TCP, as client or server.
let sockets: [Target.Dependency] = ["NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket"].map {
    .product(name: $0, package: "swift-nio")
}

/// watchOS denies apps sockets; there the SDK only has URLSession's.
let socketPlatforms: [Platform] = [.linux, .macOS, .iOS, .tvOS, .visionOS]

/// One of the example apps in the folder Examples.
func walk(_ folder: String, as name: String) -> Target {
    .executableTarget(
        name: name, dependencies: ["ExampleSupport", "Roost", "RoostAPI"], path: "Examples/\(folder)", swiftSettings: settings)
}

let package = Package(
    name: "roost",
    platforms: [.macOS(.v15), .iOS(.v17), .tvOS(.v17), .visionOS(.v1), .watchOS(.v10)],
    products: [
        .library(name: "Roost", targets: ["Roost"]),
        .library(name: "RoostAPI", targets: ["RoostAPI"]),
        .library(name: "RoostTesting", targets: ["RoostTesting"]),
        .library(name: "RoostServer", targets: ["RoostServer"]),
        .executable(name: "roost", targets: ["RoostCommand"]),
    ],
    traits: [
        .trait(name: "Server", description: "The server, the command line and their dependencies."),
        .trait(name: "Cluster", description: "PostgreSQL and NATS, for several nodes.", enabledTraits: ["Server"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
        .package(url: "https://github.com/apple/swift-crypto", "3.12.3"..<"5.0.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
    ],
    targets: [
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
        .systemLibrary(name: "CNATS", pkgConfig: "libnats", providers: [.apt(["libnats-dev"]), .brew(["cnats"])]),
        .target(name: "RoostAPI", swiftSettings: optimised),
        .target(
            name: "RoostCore", dependencies: ["RoostAPI", server("Crypto", "swift-crypto")], swiftSettings: optimised),
        .target(name: "CPageVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "RoostDatabase",
            dependencies: [
                "RoostAPI", "RoostCore", "CPageVFS",
                .target(name: "CPostgres", condition: .when(traits: ["Cluster"])),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: optimised
        ),
        .target(
            name: "RoostServer",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase",
                .target(name: "CNATS", condition: .when(traits: ["Cluster"])),
                server("Hummingbird", "hummingbird"),
                server("HummingbirdCore", "hummingbird"),
                server("HTTPTypes", "swift-http-types"),
                server("NIOHTTPTypes", "swift-nio-extras"),
                server("NIOHTTPTypesHTTP1", "swift-nio-extras"),
                server("JWTKit", "jwt-kit"),
                server("Crypto", "swift-crypto"),
                server("Metrics", "swift-metrics"),
                server("ServiceLifecycle", "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
            ] + sockets,
            swiftSettings: optimised
        ),
        .target(
            name: "Roost",
            dependencies: [
                "RoostAPI",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(platforms: socketPlatforms)),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(platforms: socketPlatforms)),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(platforms: socketPlatforms)),
                .product(name: "NIOWebSocket", package: "swift-nio", condition: .when(platforms: socketPlatforms)),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(platforms: socketPlatforms)),
            ],
            resources: [.copy("PrivacyInfo.xcprivacy")],
            swiftSettings: settings
        ),
        .target(
            name: "RoostTesting",
            dependencies: [
                "RoostAPI", "RoostServer", "Roost",
                server("ServiceLifecycle", "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .target(name: "CEpoll"),
        .target(
            name: "RoostBench",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer", "Roost",
                .target(name: "CEpoll", condition: .when(platforms: [.linux])),
                server("CoreMetrics", "swift-metrics"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "RoostCommand",
            dependencies: [
                "RoostAPI", "RoostServer", "RoostBench", "Roost",
                server("ArgumentParser", "swift-argument-parser"),
                server("Configuration", "swift-configuration"),
                server("CoreMetrics", "swift-metrics"),
                server("ServiceLifecycle", "swift-service-lifecycle"),
                server("UnixSignals", "swift-service-lifecycle"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ] + sockets,
            swiftSettings: settings
        ),
        .target(name: "ExampleSupport", dependencies: ["Roost", "RoostAPI"], path: "Examples/Support", swiftSettings: settings),
        walk("CreateQueryJoin", as: "example-create-query-join"),
        walk("DistinctInviteHide", as: "example-distinct-invite-hide"),
        walk("SendLoadEdit", as: "example-send-load-edit"),
        walk("MentionPeople", as: "example-mention-people"),
        walk("WatchTogether", as: "example-watch-together"),
        walk("ReadTogether", as: "example-read-together"),
        .executableTarget(
            name: "example-terminal-chat", dependencies: ["Roost"], path: "Examples/TerminalChat", swiftSettings: settings),
        .target(name: "CFaultVFS", path: "Tests/CFaultVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "RoostTestSupport",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer",
                server("ServiceLifecycle", "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ] + sockets,
            path: "Tests/RoostTestSupport",
            swiftSettings: optimised
        ),
        .target(
            name: "RoostClientModel", dependencies: ["RoostAPI", "Roost"], path: "Tests/RoostClientModel", swiftSettings: optimised),
        .target(name: "TaskSteps", path: "Tests/TaskSteps", swiftSettings: settings),
        .target(
            name: "RoostFuzzing",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostServer", "RoostTestSupport",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            path: "Tests/RoostFuzzing", exclude: ["Corpus"], swiftSettings: settings),
        .executableTarget(name: "roost-fuzz", dependencies: ["RoostFuzzing"], path: "Tests/RoostFuzz", swiftSettings: settings),
        // It reads one and a half megabytes of sources byte by byte: half a minute without the optimiser.
        .testTarget(
            name: "TidyTests", dependencies: ["RoostAPI", "RoostCore"], swiftSettings: settings + [.unsafeFlags(["-O"])]),
        .testTarget(name: "RoostAPITests", dependencies: ["RoostAPI"], swiftSettings: settings),
        .testTarget(
            name: "RoostCoreTests",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer", "RoostTestSupport", "CPageVFS", "CFaultVFS",
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            exclude: ["Fixtures"], swiftSettings: settings),
        .testTarget(
            name: "ConvergenceTests",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer", "Roost", "RoostClientModel", "RoostTestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: optimised),
        .testTarget(
            name: "PermissionMatrixTests", dependencies: ["RoostAPI", "RoostCore", "RoostDatabase", "RoostTestSupport"],
            swiftSettings: optimised),
        .testTarget(
            name: "RoostCommandTests",
            dependencies: [
                "RoostAPI", "RoostCommand", "RoostDatabase", "RoostServer", server("ArgumentParser", "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RoostTests",
            dependencies: [
                "RoostAPI", "Roost", "CFaultVFS", "TaskSteps",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ] + sockets,
            swiftSettings: settings),
        .testTarget(
            name: "RoostTestingTests",
            dependencies: [
                "RoostAPI", "Roost", "RoostTesting", "RoostTestSupport", "TaskSteps",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer", "RoostCommand", "Roost", "RoostTestSupport",
                "RoostFuzzing",
                server("CoreMetrics", "swift-metrics"),
                server("Crypto", "swift-crypto"), server("JWTKit", "jwt-kit"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer", "Roost", "RoostClientModel", "RoostTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ClusterTests",
            dependencies: [
                "RoostAPI", "RoostCore", "RoostDatabase", "RoostServer", "Roost", "RoostTestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RoostBenchTests",
            dependencies: [
                "RoostAPI", "RoostBench", "RoostCommand", "RoostTestSupport", server("ArgumentParser", "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CrashTests", dependencies: ["RoostAPI", "RoostServer", "RoostTestSupport"], swiftSettings: settings),
    ]
)
