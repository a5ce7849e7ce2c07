// swift-tools-version: 6.2

import PackageDescription

// A minimal app: it depends on the SDK and not on the server. scripts/test-consumer checks its resolved dependencies.
let package = Package(
    name: "consumer",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "roost", path: "../..")],
    targets: [.executableTarget(name: "Consumer", dependencies: [.product(name: "Roost", package: "roost")])]
)
