#if Cluster
import RoostAPI

/// The code of a refusal; nil if there was none. An error other than the server's answer counts as an internal error.
func refusalCode(_ body: () async throws -> some Sendable) async -> RoostError.Code? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? RoostError)?.code ?? .internalError
    }
}
#endif
