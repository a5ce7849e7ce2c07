import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import RoostAPI

/// Answers HTTP requests through the rules and routes: what Hummingbird's `Application` does, except for listening.
enum Responding {
    static func responder(_ routes: HTTPRules, logger: Logger) -> HTTPChannelHandler.Responder {
        let date = HTTPDate()
        return { (request, writer: consuming ResponseWriter, channel) in
            let context = BasicRequestContext(source: .init(channel: channel, logger: logger))
            let ticket = ConnectionTicket.current
            ticket?.requestBegan()
            var response: Response
            do {
                response = try await routes.respond(to: request, context: context)
            } catch {
                logger.error("A request failed.", metadata: ["error": "\(error)"])
                response = Problem(.internalFailure).response
            }
            response.headers[.date] = date.text
            ticket?.answerFollows()
            try await writer.write(response: response.head, body: response.body)
        }
    }
}
