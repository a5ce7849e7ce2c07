import Dispatch
import HTTPTypes
import Hummingbird
import NIOCore
import RoostAPI

/// The routes that aren't operations: the front page, the API description, health and metrics.
struct ServiceRoutes: Sendable {
    let version: String
    let readiness: Readiness
    let metrics: MetricsPage

    func add(to router: Router<BasicRequestContext>) {
        let page = FrontPage.html(version: version)
        router.get("/") { _, _ in text(page, "text/html; charset=utf-8") }
        router.get("/openapi.json") { _, _ in await description { OpenAPI.bytes } }
        router.get("/asyncapi.json") { _, _ in await description { AsyncAPI.bytes } }
        router.get("/livez") { _, _ in text("ok\n") }
        router.get("/readyz") { _, _ in
            if let reason = readiness.reason { throw RoostError(.unavailable, reason, retryAfterMilliseconds: 1000) }
            return text("ok\n")
        }
        router.get("/metrics") { _, _ in
            let page = try await metrics.page()
            ConnectionTicket.current?.answers(with: page)
            return text(page.bytes, "text/plain; version=0.0.4; charset=utf-8")
        }
        router.get(RouterPath(GatewayChannel.socketPath)) { request, _ in
            try RequestHeaders.requireNoOperationHeaders(in: request.headers)
            _ = try DeviceHeaders.device(in: request.headers)
            var response = Problem(
                RoostError(
                    .invalidArgument, "This is a WebSocket: request an upgrade, version 13, with the first request of a connection."
                ), status: 426
            )
            .response
            // RFC 9110 §15.5.22 requires the protocol's name, and §7.8 the connection option with it.
            response.headers[.upgrade] = "websocket"
            response.headers[.connection] = "Upgrade"
            return response
        }
    }

    /// Returns a description. Its bytes exist once, however many clients leave them unread. They are made on the first request instead of at each
    /// start; that takes many milliseconds, and isn't done on one of the runtime's few threads.
    private func description(_ bytes: @escaping @Sendable () -> ByteBuffer) async -> Response {
        let made = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: bytes()) }
        }
        return Response(status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: made))
    }

    private func text(_ text: String, _ type: String = "text/plain; charset=utf-8") -> Response {
        self.text(ByteBuffer(string: text), type)
    }

    private func text(_ bytes: ByteBuffer, _ type: String) -> Response {
        Response(
            status: .ok,
            headers: [
                .contentType: type,
                .contentSecurityPolicy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
                .xContentTypeOptions: "nosniff",
            ],
            body: .init(byteBuffer: bytes))
    }
}

/// The page that a browser sees at `/`. Its empty icon keeps browsers from asking for `/favicon.ico`.
enum FrontPage {
    static func html(version: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Roost</title>
        <link rel="icon" href="data:,">
        <style>
        :root { color-scheme: light dark }
        body { font: 17px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 12vh auto; padding: 0 1.5rem; color: #1d2320; background: #fbfaf7 }
        h1 { margin: 0 0 .2em; letter-spacing: -.02em } .version { color: #6b736e }
        code { background: #eeece5; padding: .1em .35em; border-radius: 4px } a { color: #146b4a }
        li { margin: .35em 0 }
        @media (prefers-color-scheme: dark) {
        body { color: #e6e9e4; background: #161917 } .version { color: #9aa39d } code { background: #262b28 } a { color: #6fd3a8 }
        }
        </style>
        </head>
        <body>
        <h1>Roost</h1>
        <p class="version">Version \(version). A server for chat channels in apps.</p>
        <p>The server is running. Endpoints:</p>
        <ul>
        <li><a href="/openapi.json">/openapi.json</a>: the description of every operation</li>
        <li><a href="/asyncapi.json">/asyncapi.json</a>: the description of the socket's frames and events</li>
        <li><code>/v1/…</code>: the operations over HTTP, with <code>Authorization: Bearer</code> and a token</li>
        <li><code>/v1/socket</code>: the same operations and the live events, over a WebSocket</li>
        <li><a href="/livez">/livez</a>, <a href="/readyz">/readyz</a>, <a href="/metrics">/metrics</a>: for monitoring</li>
        </ul>
        <p>On the machine where it runs: <code>roost token ann</code> makes a token, <code>roost chat general --as ann</code> opens a
        channel. The guides are in the <code>docs</code> folder of the project: begin with <code>README.md</code>, and with
        <code>docs/protocol.md</code> to write a client.</p>
        </body>
        </html>

        """
    }
}
