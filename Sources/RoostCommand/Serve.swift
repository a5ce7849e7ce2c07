import ArgumentParser
import Foundation
import Logging
import RoostServer
import ServiceLifecycle
import UnixSignals

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run a server.")

    @Option(help: "The data directory.") var data = "roost-data"
    @Option(help: "The address to listen on.") var host = "127.0.0.1"
    @Option(help: "The port; 0 for any free one.") var port = 8080

    func run() async throws {
        var settings = RoostServer.Configuration(dataDirectory: URL(filePath: data))
        settings.host = host
        settings.port = port
        var logger = Logger(label: "roost")
        logger.logLevel = .info
        let server = try await RoostServer(configuration: settings, logger: logger) { port in
            print("Roost \(RoostVersion.current) listens on http://\(host):\(port), data in \(data)")
        }
        let group = ServiceGroup(
            configuration: .init(services: [server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run()
    }
}
